"""Sources as text and trees."""
