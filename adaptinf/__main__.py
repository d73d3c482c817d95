"""The command line as ``python -m adaptinf``."""

import sys

from adaptinf.cli import main

if __name__ == "__main__":
    sys.exit(main())
