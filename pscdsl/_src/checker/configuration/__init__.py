"""What `[tool.pscdsl]` in pyproject.toml says."""
