"""Arguments as provenance shows them: nothing that looks like a secret, nothing long.

Judged are names (of members, headers, options) and values by their look. When in doubt, hide: what is hidden here
is missing from a description; what is shown may be kept in a file.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from loom._plain import is_list, is_object

if TYPE_CHECKING:
    from loom.protocol import Payload

REDACTED = "[redacted]"
OMITTED = "[omitted]"
LONG = "[long]"
MOST_CHARS = 200
_MOST_BYTES = 4096  # of all arguments together
_MOST_MEMBER_BYTES = 16_384  # of an object or array that is looked into; a longer one is not shown in any case
_MOST_WALKED_BYTES = 65_536  # of all of those: this runs on the event loop
_MOST_MEMBERS = 1_000
_MOST_DEPTH = 20
_MOST_ALIASED = 16  # arguments that become columns of the union of a tool's results
_MOST_SCANNED = 4_096  # characters of a string: a secret that is shown begins in the first 200
_INTEGERS = range(-(2**63), 2**63)  # what goes through the pipe to the store

Scalar: TypeAlias = str | int | float | bool | None

_SECRETS = (
    "secret", "passw", "passphrase", "pwd", "apikey", "authorization", "bearer", "credential", "cookie",
    "privatekey",
)  # fmt: skip
# Words of a name, whichever way it is written: camelCase, snake_case, kebab-case, with blanks.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FOREIGN = re.compile(r"[^a-z0-9]+")
# Words beside "token" that make it a number of tokens, and those that do so only beside "tokens".
_COUNTS = (
    "max", "maximum", "min", "minimum", "count", "total", "limit", "budget", "num", "number", "threshold", "size",
    "length", "usage", "per",
)  # fmt: skip
_COUNTS_OF_MANY = (
    "used", "prompt", "completion", "input", "output", "new", "n", "remaining", "left", "estimated", "thinking",
    "reasoning", "cached", "approx", "avg", "average", "sum", "spent", "consumed", "context", "generated",
)  # fmt: skip
_COUNT = re.compile(rf"(?:{'|'.join((*_COUNTS, 'token'))})+")
_COUNT_OF_MANY = re.compile(rf"(?:{'|'.join((*_COUNTS, *_COUNTS_OF_MANY, 'tokens'))})+")
_LONGEST_ESCAPE = 13  # bytes, and one more: two surrogates
_DIGITS = re.compile(r"[0-9]{1,9}")

# Quantifiers have bounds: the strings are the client's.
_NAMED = r"""(?:secret|passw(?:or)?d|passphrase|pwd|api[\ _-]?key|authorization|bearer|credential|cookie
    |private[\ _-]?key)s?|token"""
_SECRET_VALUE = re.compile(
    rf"""
    (?<![A-Za-z0-9])(?:
        eyJ[A-Za-z0-9_-]{{6,}}\.[A-Za-z0-9_-]{{4,}}                   # JWT
        | (?:sk|rk)-[A-Za-z0-9_-]{{8,}}                               # API keys of several providers
        | (?:sk|pk|rk)_(?:live|test|prod)_[A-Za-z0-9]{{6,}}
        | gh[opusr]_[A-Za-z0-9]{{6,}} | github_pat_[A-Za-z0-9_]{{6,}} | glpat-[A-Za-z0-9_-]{{6,}}
        | xox[abeoprs]-[A-Za-z0-9-]{{6,}} | xapp-[A-Za-z0-9-]{{10,}}
        | npm_[A-Za-z0-9]{{20,}} | pypi-[A-Za-z0-9_-]{{20,}} | hf_[A-Za-z0-9]{{20,}} | dckr_pat_[A-Za-z0-9_-]{{6,}}
        | AKIA[A-Z0-9]{{8,}} | ASIA(?=[A-Z]{{0,15}}[0-9])[A-Z0-9]{{16}}   # AWS
        | AIza[A-Za-z0-9_-]{{20,}} | ya29\.[A-Za-z0-9_-]{{10,}}       # Google
    )
    | -----BEGIN\                                                     # PEM
    | //[^/\s?\#]{{0,300}}@ | //[^\s@/]{{0,300}}:(?!\d{{1,5}}/)[^\s@]{{0,300}}@   # user information in a URL
    | (?i:%3A%2F%2F[^\s/]{{0,300}}%40)
    | (?i:\bbearer)\s{{1,9}}[A-Za-z0-9+/._~=-]{{8,}}
    | (?i:\bbasic)\s{{1,9}}(?=[A-Za-z0-9][a-z]{{0,200}}[A-Z0-9+/=])[A-Za-z0-9+/_=-]{{8,}}
    | (?i:{_NAMED})["'\]]{{0,2}}\s{{0,9}}=\s{{0,9}}["']?[^\s"'&;,]    # name=value: queries, connection strings
    | (?i:{_NAMED})\\?["']\s{{0,9}}:\s{{0,9}}(?!null)\S               # JSON in a string
    | (?im:(?:^\s{{0,9}}|["'])[\w-]{{0,40}}(?:{_NAMED}):\s{{0,9}}\S)     # a header
    | (?i:(?<!\S)--?[\w-]{{0,40}}(?:{_NAMED})[\w-]{{0,40}}\s{{1,9}}["']?\w)  # an option in a command
    """,
    re.VERBOSE,
)
_OPTION = re.compile(r"--?[A-Za-z][\w-]{0,60}")
_NAME_KEYS = frozenset({"name", "key", "header", "field", "param", "parameter", "k"})
_VALUE_KEYS = frozenset({"value", "values", "val", "v", "content", "data"})

_TOO_LONG = object()  # stands for what was not decoded, and is no argument of the text that is shown for it
_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")


def redact_arguments(arguments: Payload | None, *, denied: bool) -> tuple[bytes, dict[str, Scalar]]:
    """Return the arguments as JSON that may be shown, and those at the top that redaction leaves as they are.

    ``denied`` is for tools whose arguments are never shown. Numbers keep their digits. Objects and arrays that are
    long read ``"[long]"``, and so does all that is beyond 4 KB; the work is bounded whatever is given. Never
    raises: what cannot be read is omitted.
    """
    if denied:
        return msgspec.json.encode(OMITTED), {}
    if arguments is None:
        return b"{}", {}
    try:
        value = _decoded(arguments)
        shown = _redacted(value, 0)
        body = _encoder.encode(shown)
        if len(body) > _MOST_BYTES and is_object(shown):
            shown = {key: member if _is_short(member) else LONG for key, member in shown.items()}
            body = _encoder.encode(shown)
    except (msgspec.DecodeError, RecursionError, ValueError, ArithmeticError):
        return msgspec.json.encode(OMITTED), {}
    if len(body) > _MOST_BYTES:
        return msgspec.json.encode(LONG), {}
    return body, _kept(value, shown)


def _decoded(arguments: Payload) -> Any:  # Any: JSON
    """Decode what is short enough to be shown; the rest stands as ``LONG``."""
    try:
        members = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:  # JSON, but no object
        return _decoder.decode(arguments) if len(arguments) <= _MOST_MEMBER_BYTES else LONG
    if len(members) > _MOST_MEMBERS:
        return LONG
    value: dict[str, Any] = {}  # Any: JSON
    left = _MOST_WALKED_BYTES
    for key, raw in members.items():
        size = len(memoryview(raw))
        if bytes(memoryview(raw)[:1]) == b'"':
            value[key] = _beginning(raw) if size > _MOST_MEMBER_BYTES else _decoder.decode(raw)
        elif size > min(left, _MOST_MEMBER_BYTES):
            value[key] = _TOO_LONG
        else:
            left -= size
            value[key] = _decoder.decode(raw)
    return value


def _beginning(raw: Payload) -> str:
    """Decode the beginning of a long string: it is cut wherever no escape and no character is in two."""
    piece = bytes(memoryview(raw)[:_MOST_MEMBER_BYTES])
    for dropped in range(_LONGEST_ESCAPE):
        try:
            return msgspec.json.decode(piece[: len(piece) - dropped] + b'"', type=str)
        except msgspec.DecodeError:
            continue
    raise ValueError("the string is none")


def _is_short(value: Any) -> bool:  # Any: JSON
    return len(_encoder.encode(value)) <= MOST_CHARS


def _kept(value: Any, shown: Any) -> dict[str, Scalar]:  # Any: JSON
    if not is_object(value) or not is_object(shown):
        return {}
    kept: dict[str, Scalar] = {}
    for key, member in value.items():
        scalar = _scalar(member)
        if scalar is not None and key in shown and shown[key] == member and len(kept) < _MOST_ALIASED:
            kept[key] = scalar
    return kept


def _scalar(value: Any) -> Scalar:  # Any: JSON
    """Return what can be the value of a column, exactly, or None."""
    if isinstance(value, Decimal):
        double = float(value)
        return double if Decimal(repr(double)) == value else None
    if isinstance(value, int):
        return value if value in _INTEGERS else None
    return value if isinstance(value, str) else None


# ---------------------------------------------------------------- redaction


def _redacted(value: Any, depth: int) -> Any:  # Any: JSON
    if value is _TOO_LONG:
        return LONG
    if depth > _MOST_DEPTH:
        return "[deep]"
    if is_object(value):
        return _redacted_object(value, depth)
    if is_list(value):
        return _redacted_array(value, depth)
    if isinstance(value, str):
        return REDACTED if _looks_secret(value) else _short(value)
    return value


def _redacted_object(value: dict[str, Any], depth: int) -> dict[str, Any]:  # Any: JSON
    named = any(
        isinstance(member, str) and key.casefold() in _NAME_KEYS and is_secret_name(member)
        for key, member in value.items()
    )
    shown: dict[str, Any] = {}  # Any: JSON
    for key, member in value.items():
        hidden = (named and key.casefold() in _VALUE_KEYS) or _hides(key, member)
        shown[REDACTED if _looks_secret(key) else _short(key)] = (
            REDACTED if hidden else _redacted(member, depth + 1)
        )
    return shown


def _redacted_array(value: list[Any], depth: int) -> list[Any]:  # Any: JSON
    shown = [_redacted(item, depth + 1) for item in value]
    for position, (name, item) in enumerate(pairwise(value), start=1):
        is_option = isinstance(name, str) and _OPTION.fullmatch(name) is not None and is_secret_name(name)
        if is_option and isinstance(item, str) and not item.startswith("-"):
            shown[position] = REDACTED
    for position, item in enumerate(value):
        if is_list(item) and len(item) == 2 and isinstance(item[0], str) and is_secret_name(item[0]):
            shown[position] = [item[0], REDACTED]  # a header as name and value
    return shown


def _looks_secret(text: str) -> bool:
    return _SECRET_VALUE.search(text, 0, _MOST_SCANNED) is not None


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARS else text[: MOST_CHARS - 1] + "…"


def is_secret_name(name: str) -> bool:
    """Tell whether what a short text names is a secret; a number of tokens is none."""
    return len(name) <= MOST_CHARS and _hides(name, 0)


def _hides(key: str, value: Any) -> bool:  # Any: JSON
    """Tell whether the value under a key is hidden.

    A number of tokens is told from a token by the words beside it, and by its value, which is numbers only.
    """
    if len(key) > _MOST_SCANNED:
        return True
    normal = unicodedata.normalize("NFKD", key)
    plain = _FOREIGN.sub("", normal.casefold())
    if any(part in plain for part in _SECRETS):
        return True
    if "token" not in plain:
        return False
    words = [word.lower() for word in _WORDS.findall(normal)]
    many = "tokens" in plain
    beside = (*_COUNTS, *_COUNTS_OF_MANY) if many else _COUNTS
    in_one_word = (_COUNT_OF_MANY if many else _COUNT).fullmatch(plain) and plain not in ("token", "tokens")
    is_count = in_one_word or not set(beside).isdisjoint(words)
    return not (is_count and _is_numeric(value, texts=many))


def _is_numeric(value: Any, *, texts: bool) -> bool:  # Any: JSON
    if is_object(value):
        return all(_is_numeric(member, texts=texts) for member in value.values())
    if is_list(value):
        return all(_is_numeric(item, texts=texts) for item in value)
    if isinstance(value, str):
        return texts and _DIGITS.fullmatch(value) is not None
    return True
