"""`python -m steerkit.frontends.acp`: the same as `steerkit acp`."""

import sys

from steerkit.frontends.cli import main

if __name__ == "__main__":
    main(["acp", *sys.argv[1:]])
