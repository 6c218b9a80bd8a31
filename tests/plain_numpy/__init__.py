"""Programs in plain NumPy, as they are written, and how much of them a kernel accepts."""
