"""What signatures and classes declare."""
