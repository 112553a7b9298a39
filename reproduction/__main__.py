"""`python -m reproduction COMMAND`."""

import sys

from reproduction.commands import main

if __name__ == "__main__":
    sys.exit(main())
