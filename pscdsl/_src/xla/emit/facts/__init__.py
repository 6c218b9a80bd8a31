"""What is known of values while a module is emitted."""
