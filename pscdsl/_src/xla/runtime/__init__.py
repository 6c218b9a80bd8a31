"""Devices, arrays, memory."""
