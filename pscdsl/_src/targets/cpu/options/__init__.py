"""Options of compilation, module by module."""
