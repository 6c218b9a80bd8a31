"""Functions of the typed program to functions of the typed program."""
