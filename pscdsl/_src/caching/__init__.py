"""Files that are stored between processes, and where."""
