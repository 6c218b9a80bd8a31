"""`python -m pscdsl` is the same as the command `pscdsl`."""

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
    # What lies in the current folder is to be read, not run.  Python itself has looked there for
    # the package and what it imports first: `python -P -m pscdsl`, or the command, does not.
    del sys.path[0]

from pscdsl._src.cli import command

if __name__ == "__main__":
    command()
