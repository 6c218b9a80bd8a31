"""The primitives of the typed program, one family a file; each is declared with all its rules."""
