"""What is known of typed programs: costs, ranges of numbers, uses of keys, warnings."""
