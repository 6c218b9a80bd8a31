"""Derivatives of whole programs: functions as text, and what must hold of them."""
