"""Everything that touches jaxlib: emission, compilation, device arrays, calls.

Nothing here is imported by `pscdsl check`.
"""
