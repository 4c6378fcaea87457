"""`python -m fnad` is the command `fnad`."""

import sys

from fnad.cli import main

sys.exit(main())
