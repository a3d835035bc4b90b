"""Whether raw JSON may hold a key: cheap enough to ask of every call, and never wrong when it says no."""

from __future__ import annotations

import re

_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")  # an encoder may write any character of a key as an escape


def may_hold_key(raw: bytes, quoted: bytes) -> bool:
    """Tell whether ``quoted``, a key as it is mostly written, or an escaped spelling may be in ``raw``."""
    return quoted in raw or (b"\\u00" in raw and _ESCAPED_ASCII.search(raw) is not None)
