"""Forms of sorts, sums and extremes along rows."""
