"""What the programs compute, by another way."""
