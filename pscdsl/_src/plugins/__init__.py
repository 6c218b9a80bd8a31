"""Plug-ins of pytest and typeguard."""
