"""Transformations of functions: derivatives, batches, residuals for reverse mode."""
