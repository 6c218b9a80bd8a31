"""The texts and trees of sources."""
