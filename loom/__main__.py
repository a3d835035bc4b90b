"""``python -m loom`` is the same program as ``loom``."""

import sys

from loom.cli import main

sys.exit(main())
