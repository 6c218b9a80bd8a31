"""The ranges of integers, for every size."""
