"""From arguments to buffers and back."""
