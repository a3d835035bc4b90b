"""Records of ``Key: value`` lines, numbered or with a blank line between them.

Removed are the numbers, the words and the lines of punctuation that part records, the colon, blanks around a key
and a value, and the bullet and the asterisks of ``- **Key:** value``.

Theory of operation. Lines are gathered into groups: a blank line or a line of punctuation ends one, a number
begins one. If groups are numbered, exactly those are the records, they count from 1 without a gap, and nothing
stands between them. Else every group of key lines that shares half of the common keys is a record. Groups before
the first record and after the last one are residue, unless one of the common keys shows up in them.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct, field

from loom.tabular._text_lines import (
    BLANKS,
    is_blank,
    is_fence,
    is_half_covered,
    is_row_count,
    residue_of,
    split_lines,
)
from loom.tabular._text_table import TextTable

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_RECORDS = 5
MIN_KEYS = 2
ALIKE_PERCENT = 90

# A key ends at the first colon with a blank or the end after it, at a full-width colon, or at a colon after a
# letter of a script that is written without blanks.
_KEY_LINE = re.compile(
    r"[ \t]*(?:[-*•+][ \t]+)?(?P<bold>\*\*)?"
    r"(?P<key>[^\s:\uff1a*][^:\uff1a\n]{0,79}?(?::[^\s:\uff1a][^:\uff1a\n]{0,79}?){0,3}?)"
    r"(?P<shut>\*\*)?[ \t]*(?:\uff1a|:(?=[ \t]|\*\*|$)|(?<=[\u2e80-\U0003fffd]):)(?P<late>\*\*)?"
    r"[ \t]*(?P<value>.*)"
)
_DIGIT = re.compile(r"[0-9]")
_DIGITS = re.compile(r"[0-9]+")
_SEEN_FORMS = 20
_TRIED_FORMS = 3
_LONGEST_NUMBER_LINE = 160  # also what keeps the time of the pattern small
_NO_KEY = re.compile(r"[\"{}<>`|]|//")
_RULE = re.compile(r"[ \t]*([-=*_~#+])(?:[ \t]*\1){2,}[ \t]*")
# "1. ", "1) ", "[1] ", "#1 " before the first key of a record
_NUMBER_BEFORE = re.compile(r"[ \t]*(?:(\d{1,9})[.)]|\[(\d{1,9})\]\.?|#(\d{1,9})[.):]?)[ \t]+(?=\S)", re.ASCII)
# A line that holds a number and at most a word: "1.", "Record 1:", "## Result #1", "--- 1. row ---", "第 1 条"
_NUMBER_LINE = re.compile(
    r"[ \t]*[-=*_#\[(+ \t]*(?:[^\W\d_]{1,20}[ \t]*)?[#\[(]?(\d{1,9})[.)\]]?(?:[ \t]*[^\W\d_]{1,20})?"
    r"[ \t]*[:\uff1a]?[-=*_#\])+ \t]*"
)


# Only a text in which some line may begin record 1 is looked at for numbers.
_NUMBER_ONE = re.compile(r"^[^\w\n]{0,80}(?:[^\W\d_]{1,20}[ \t]{0,9})?[^\w\n]{0,9}0{0,8}1(?!\d)", re.MULTILINE)


class _Group(Struct):
    """Lines that stand together; ``number`` where they begin with one."""

    number: int | None
    first: int  # index of its first line
    last: int
    texts: list[str] = field(default_factory=list[str])
    pairs: dict[str, str] | None = None  # None: not all lines are key lines, or a key comes twice


def parse_record_blocks(text: str) -> TextTable | None:
    """Return the records that the text is, but for lines before and after them, or None.

    At least five records with two keys, nine of ten of them with the same set of keys. A key that a record lacks
    gives an empty cell; where an empty value of that key occurs as well, the two could not be told apart: None.
    Lines that continue a value are not read: None.
    """
    if ":" not in text and "\uff1a" not in text:
        return None
    lines = split_lines(text)
    return _numbered(text, lines) or _separated(text, lines)


def _numbered(text: str, lines: list[str]) -> TextTable | None:
    likely = (form for form in _first_forms(text) if form.replace("1", str(MIN_RECORDS)) in text)
    for form in islice(likely, _TRIED_FORMS):
        table = _numbered_so(text, lines, form)
        if table is not None:
            return table
    return None


def _first_forms(text: str) -> list[str]:
    """Return in which forms a line holds the number 1; of many, the first ones."""
    forms: dict[str, None] = {}
    for match in _NUMBER_ONE.finditer(text):
        end = text.find("\n", match.end())
        number, form, _ = _number_of(text[match.start() : end if end >= 0 else None].removesuffix("\r"))
        if number == 1:
            forms[form] = None
        if len(forms) == _SEEN_FORMS:
            break
    return list(forms)


def _numbered_so(text: str, lines: list[str], form: str) -> TextTable | None:
    groups = _groups(lines, form)
    marked = [index for index, group in enumerate(groups) if group.number is not None]
    if len(marked) < MIN_RECORDS:
        return None
    start, end = marked[0], marked[-1] + 1
    records = groups[start:end]
    if [group.number for group in records] != list(range(1, len(records) + 1)):
        return None
    return _table(text, lines, groups, start, end)


def _separated(text: str, lines: list[str]) -> TextTable | None:
    groups = _without_heading(_groups(lines, None))
    keyed = [frozenset(group.pairs) for group in groups if group.pairs is not None]
    if len(keyed) < MIN_RECORDS:
        return None
    common = Counter(keyed).most_common(1)[0][0]
    alike = [
        index
        for index, group in enumerate(groups)
        if group.pairs is not None and 2 * len(common & group.pairs.keys()) >= len(common)
    ]
    return _table(text, lines, groups, alike[0], alike[-1] + 1)


def _without_heading(groups: list[_Group]) -> list[_Group]:
    """Part a heading such as ``Commit history:`` from the first record, when no blank line stands between them.

    It looks like a key without a value, and no other record has that key.
    """
    if not groups or groups[0].pairs is None or len(groups[0].texts) <= MIN_KEYS:
        return groups
    first, rest = groups[0], groups[1:]
    key, value = next(iter(groups[0].pairs.items()))
    if value or any(group.pairs is not None and key in group.pairs for group in rest):
        return groups
    heading = _Group(number=None, first=first.first, last=first.first, texts=first.texts[:1])
    record = _Group(number=None, first=first.first + 1, last=first.last, texts=first.texts[1:])
    record.pairs = _pairs(record.texts)
    return [heading, record, *rest]


def _groups(lines: list[str], form: str | None) -> list[_Group]:
    """Gather lines; of numbers only those of one form count."""
    groups: list[_Group] = []
    current: _Group | None = None
    for index, line in enumerate(lines):
        number, seen, rest = _number_of(line) if form is not None else (None, "", line)
        if number is not None and seen == form:
            current = _Group(number=number, first=index, last=index, texts=[rest] if rest else [])
            groups.append(current)
        elif is_fence(line) or (":" not in line and is_row_count(line)):
            groups.append(_Group(number=None, first=index, last=index, texts=[line]))
            current = None
        elif is_blank(line) or _RULE.fullmatch(line):
            # A number on a line of its own may be set apart from its record.
            current = current if current is not None and not current.texts else None
        elif current is None:
            current = _Group(number=None, first=index, last=index, texts=[line])
            groups.append(current)
        else:
            current.texts.append(line)
            current.last = index
    for group in groups:
        group.pairs = _pairs(group.texts)
    return groups


def _number_of(line: str) -> tuple[int | None, str, str]:
    """Return the number that a line begins a record with, the line around it, and what follows it."""
    if not _DIGIT.search(line):
        return None, "", line
    if (match := _NUMBER_BEFORE.match(line)) and _KEY_LINE.fullmatch(line, match.end()):
        form = f"{_DIGITS.sub('1', match[0].strip(BLANKS))} "
        return int(match[1] or match[2] or match[3]), form, line[match.end() :]
    if len(line) <= _LONGEST_NUMBER_LINE and (match := _NUMBER_LINE.fullmatch(line)):
        return int(match[1]), _DIGITS.sub("1", line.strip(BLANKS)), ""
    return None, "", line


def _pairs(texts: Sequence[str]) -> dict[str, str] | None:
    pairs: dict[str, str] = {}
    for text in texts:
        pair = _pair(text)
        if pair is None or pair[0] in pairs:
            return None
        pairs[pair[0]] = pair[1]
    return pairs


def _pair(text: str) -> tuple[str, str] | None:
    match = _KEY_LINE.fullmatch(text)
    if match is None or bool(match["bold"]) != bool(match["shut"] or match["late"]):
        return None
    key = match["key"]
    if _NO_KEY.search(key) or not any(map(str.isalpha, key)):
        return None
    return key, match["value"].strip(BLANKS)


def _table(text: str, lines: list[str], groups: list[_Group], start: int, end: int) -> TextTable | None:
    records = [group.pairs for group in groups[start:end] if group.pairs is not None]
    if len(records) < max(MIN_RECORDS, end - start):
        return None
    common, alike = Counter(map(frozenset, records)).most_common(1)[0]
    beside = [*groups[:start], *groups[end:]]
    if len(common) < MIN_KEYS or 100 * alike < ALIKE_PERCENT * len(records) or _mentions(beside, common):
        return None
    if not _are_sound(records, common):
        return None
    names = tuple(dict.fromkeys(key for record in records for key in record))
    rows = [[record.get(name, "") for name in names] for record in records]
    after = groups[end - 1].last + 1
    if after < len(lines) and _RULE.fullmatch(lines[after]):
        after += 1  # it closes the last record as others close theirs
    residue = residue_of(lines[: groups[start].first], lines[after:])
    if not is_half_covered(text, residue):
        return None
    return TextTable(source="text:record-blocks", names=names, rows=rows, residue=residue)


def _mentions(groups: Sequence[_Group], common: frozenset[str]) -> bool:
    """Say whether a common key stands outside the records: a record that was cut, or one of another form."""
    pairs = (_pair(text) for group in groups for text in group.texts)
    return any(pair[0] in common for pair in pairs if pair is not None)


def _are_sound(records: Sequence[dict[str, str]], common: frozenset[str]) -> bool:
    """Judge the records that differ from the others.

    Each has half of the common keys. A further key has a value, and if it is the only one of its kind it does
    not stand where a title or a footer would. No key is both left out and empty.
    """
    counts = Counter(key for record in records for key in record)
    empty = {key for record in records for key, value in record.items() if not value}
    if any(2 * len(common & record.keys()) < len(common) for record in records):
        return False
    if any(counts[key] < len(records) for key in sorted(empty)):
        return False
    edges = (next(iter(records[0])), next(reversed(records[-1])))
    return all(counts[key] > 1 for key in edges)
