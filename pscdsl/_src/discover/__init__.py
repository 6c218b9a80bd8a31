"""Discovery: which functions of plain NumPy code are PSC already, and what stops the others."""
