"""From Python source to the typed program."""
