"""Exit codes, as docs/cli.md lists them."""

from typing import Final

EXIT_OK: Final = 0
EXIT_USAGE: Final = 2
EXIT_CONFIG: Final = 2
EXIT_UNAVAILABLE: Final = 69  # EX_UNAVAILABLE of sysexits.h
EXIT_SIGNAL_BASE: Final = 128
