"""Run the commands as `python -m artreplay COMMAND` where the command `artreplay` is not on the path."""

import sys

from artreplay.cli import main

if __name__ == "__main__":
    sys.exit(main())
