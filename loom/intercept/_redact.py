"""Arguments as provenance shows them: nothing that looks like a secret, nothing long."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import msgspec

if TYPE_CHECKING:
    from loom.protocol import Payload

REDACTED = "[redacted]"
OMITTED = "[omitted]"
MOST_CHARS = 200
_MOST_BYTES = 4096  # of all arguments together
_MOST_DEPTH = 20
_MOST_ALIASED = 16  # arguments that become columns of the union of a tool's results

Scalar: TypeAlias = str | int | float | bool | None

# Words of a key, whichever way it is written: camelCase, snake_case, kebab-case, with blanks.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    {
        "secret", "secrets", "password", "passwords", "passwd", "pwd", "passphrase", "apikey", "apikeys",
        "authorization", "bearer", "credential", "credentials", "cookie", "cookies", "privatekey",
    }
)  # fmt: skip
_SECRET_PARTS = ("secret", "passw", "apikey", "authorization", "bearer", "credential", "cookie", "privatekey")
_TOKEN = re.compile(r"tokens?$|^tokens?")
# Words beside "token" that make it a count, a piece of text or a place, not a key.
_COUNTS = frozenset(
    {
        "max", "min", "used", "usage", "count", "total", "limit", "budget", "num", "number", "prompt",
        "completion",
        "input", "output", "per", "remaining", "left", "estimated", "threshold", "size", "length", "thinking",
        "reasoning", "cached", "approx", "avg", "average", "n", "new",
    }
)  # fmt: skip
_SECRET_VALUE = re.compile(
    r"""
    \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}            # JWT
    | -----BEGIN\ [A-Z0-9\ ]*-----                        # PEM
    | \b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{12,}   # API keys of several providers
    | \b(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abposr]|npm|pypi|hf)[-_][A-Za-z0-9_-]{10,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,}                        # AWS
    | \bAIza[A-Za-z0-9_-]{20,}                            # Google
    | ://[^/\s:@]+:[^/\s@]+@ | ://[^/\s:@]{12,}@          # user information in a URL
    | (?i:\b(?:bearer|basic)\s+[A-Za-z0-9+/._=-]{12,})
    """,
    re.VERBOSE,
)


def redact_arguments(arguments: Payload | None, *, denied: bool) -> tuple[bytes, dict[str, Scalar]]:
    """Return the arguments as JSON that may be shown, and those at the top that redaction leaves as they are.

    ``denied`` is for tools whose arguments are never shown. Never raises: what cannot be read is omitted.
    """
    if denied:
        return msgspec.json.encode(OMITTED), {}
    if arguments is None:
        return b"{}", {}
    try:
        value: Any = msgspec.json.decode(arguments)  # Any: JSON
        shown = _redacted(value, 0)
        body = msgspec.json.encode(shown)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return msgspec.json.encode(OMITTED), {}
    if len(body) > _MOST_BYTES:
        shown = {key: member if _is_short(member) else "[long]" for key, member in _members(shown)}
        body = msgspec.json.encode(shown)
    if len(body) > _MOST_BYTES:
        return msgspec.json.encode("[long]"), {}
    return body, _kept(value, shown)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:  # Any: JSON
    """Tell whether a value is a JSON object; ``loom.tabular`` has this too, but is not loaded in the proxy."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:  # Any: JSON
    """Tell whether a value is a JSON array."""
    return isinstance(value, list)


def _members(value: Any) -> list[tuple[str, Any]]:  # Any: JSON
    return list(value.items()) if is_object(value) else []


def _is_short(value: Any) -> bool:  # Any: JSON
    return len(msgspec.json.encode(value)) <= MOST_CHARS


def _kept(value: Any, shown: Any) -> dict[str, Scalar]:  # Any: JSON
    if not is_object(value) or not is_object(shown):
        return {}
    kept: dict[str, Scalar] = {}
    for key, member in value.items():
        if isinstance(member, (str, int, float, bool)) and shown.get(key) == member and len(kept) < _MOST_ALIASED:
            kept[key] = member
    return kept


def _redacted(value: Any, depth: int) -> Any:  # Any: JSON
    if depth > _MOST_DEPTH:
        return "[deep]"
    if is_object(value):
        return {
            _short_key(key): REDACTED
            if is_secret_key(key) and member not in (None, "", False, True)
            else _redacted(member, depth + 1)
            for key, member in value.items()
        }
    if is_array(value):
        return [_redacted(item, depth + 1) for item in value]
    if isinstance(value, str):
        if _SECRET_VALUE.search(value):
            return REDACTED
        return value if len(value) <= MOST_CHARS else value[: MOST_CHARS - 1] + "…"
    return value


def _short_key(key: str) -> str:
    if _SECRET_VALUE.search(key):
        return REDACTED
    return key if len(key) <= MOST_CHARS else key[: MOST_CHARS - 1] + "…"


def is_secret_key(key: str) -> bool:
    """Tell whether the value under a key is to be hidden."""
    words = [word.lower() for word in _WORDS.findall(key)]
    joined = "".join(words)
    if _SECRET_WORDS.intersection(words) or any(part in joined for part in _SECRET_PARTS):
        return True
    if "pwd" in words or any(a == "api" and b.startswith("key") for a, b in itertools.pairwise(words)):
        return True
    if any(a == "private" and b.startswith("key") for a, b in itertools.pairwise(words)):
        return True
    tokens = [word for word in words if _TOKEN.search(word)]
    return bool(tokens) and not _COUNTS.intersection(words)
