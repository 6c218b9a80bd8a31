"""`python -m pscdsl` is the same as the command `pscdsl`."""

import sys

from pscdsl.cli import main

if __name__ == "__main__":
    sys.exit(main())
