"""Discovery: functions of plain NumPy code that are PSC already, and obstacles in the others."""
