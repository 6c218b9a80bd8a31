"""Values while a body is elaborated, and what is pure."""
