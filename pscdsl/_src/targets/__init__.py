"""What depends on the device."""
