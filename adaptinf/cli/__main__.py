"""The command line as ``python -m adaptinf.cli``."""

import sys

from adaptinf.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
