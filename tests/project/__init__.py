"""The repository itself: its documents, its layout, its tools."""
