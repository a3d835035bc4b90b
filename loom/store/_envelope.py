"""What the model sees instead of a large result: a few rows, what stands in the columns, and how to ask for more.

An envelope has a budget. What does not fit is shortened in stages, the least useful first; columns that still do
not fit are counted, not shown. What stood beside the rows (``context``) is shown as it was sent or there is no
envelope at all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from loom.store._naming import quote
from loom.store._profile import MAX_TEXT, cut, from_text, shown
from loom.tabular import estimate_tokens_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from loom.store._hints import Hint
    from loom.store._model import ColumnInfo, Dataset, Provenance
    from loom.store._profile import ColumnProfile

SAMPLE_ROWS = 5
FULL_ROWS = 10
FULL_TOKENS = 25_000  # about what one answer may be; beyond it also loom_describe shortens

_COLUMN_TOKENS = 8  # no entry of the schema takes less
_SAMPLE_COLUMNS = 300  # more than an envelope of the usual budget has room for
_SHOWN_ARGS = 300  # characters of the arguments where room is short
_SHOWN_REFS = 10  # other datasets of the same result where room is short
_USAGE_NAME = 60  # characters; longer names do not make an example
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")

_encoder = msgspec.json.Encoder(decimal_format="number")  # context holds exact numbers as Decimal


class _Stage(NamedTuple):
    """How much is shown: of a column 0 the type, 1 the counts, 2 the ends, 3 the common values."""

    detail: int
    cell: int  # characters of a string
    rows: int  # of the sample
    hints: int
    short: bool = False  # arguments and names of other datasets too


_STAGES = (
    _Stage(3, MAX_TEXT, SAMPLE_ROWS, 10),
    _Stage(3, 80, SAMPLE_ROWS, 10),
    _Stage(2, 80, SAMPLE_ROWS, 10),
    _Stage(2, 40, SAMPLE_ROWS, 10),
    _Stage(1, 40, SAMPLE_ROWS, 5),
    _Stage(1, 40, 3, 3, short=True),
    _Stage(0, 40, 3, 3, short=True),
    _Stage(0, 40, 1, 3, short=True),
)
_NARROW_STAGES = (_Stage(0, 40, 1, 3, short=True), _Stage(0, 40, 0, 0, short=True))
_FULL_STAGES = (
    _Stage(3, MAX_TEXT, FULL_ROWS, 10),
    _Stage(3, 80, FULL_ROWS, 10),
    _Stage(2, 40, FULL_ROWS, 10),
    _Stage(1, 40, SAMPLE_ROWS, 10),
    _Stage(0, 40, 1, 10),
    _Stage(0, 40, 0, 10),
)


def fetch_sample(
    connection: DuckDBPyConnection, dataset: Dataset, n: int = SAMPLE_ROWS, *, full: bool = False
) -> list[dict[str, Any]]:
    """Return the first rows in order, as JSON shows them (Any: JSON scalars); at most 300 columns unless full.

    Dates and times have the form in which they were sent. Strings come with at most one character more than an
    envelope shows; columns of JSON text stay the text, which may be cut, too.
    """
    if n <= 0 or not dataset.columns:
        return []
    columns = dataset.columns if full else dataset.columns[:_SAMPLE_COLUMNS]
    terms = ", ".join(shown(column) for column in columns)
    # the limit stands inside: the terms are long, and need not be computed for the rows that are not taken
    query = f"SELECT {terms} FROM (SELECT * FROM {quote(dataset.ref)} LIMIT {int(n)})"
    return [
        {column.name: from_text(column.type, text) for column, text in zip(columns, row, strict=True)}
        for row in connection.execute(query).fetchall()
    ]


def build_envelope(
    dataset: Dataset,
    profiles: Sequence[ColumnProfile],
    sample_rows: Sequence[dict[str, Any]],  # Any: JSON scalars, as fetch_sample returns them
    hints: Sequence[Hint],
    *,
    budget_tokens: int = 2000,
    original_tokens: int,
    durable: bool = False,
    asked_for: bool = False,
    age_seconds: int | None = None,
    full: bool = False,
) -> bytes | None:
    """Return the envelope as JSON, or None when it cannot be made small enough with its context whole.

    At most ``budget_tokens``, and at most half of ``original_tokens`` when it stands for a result that would go
    up otherwise.

    Args:
        durable: whether datasets outlive loom.
        asked_for: it was asked for (materialized), and says whether it is durable. Never None then.
        full: everything, for loom_describe: all columns, and no budget but what an answer may be. Never None then.
    """
    maker = _Maker(dataset, profiles, sample_rows, hints, original_tokens)
    maker.durable, maker.asked_for, maker.age_seconds, maker.full = durable, asked_for, age_seconds, full
    try:
        if full:
            return maker.richest(_FULL_STAGES, max(budget_tokens, FULL_TOKENS)) or maker.render(_FULL_STAGES[-1])
        return maker.fit(budget_tokens if asked_for else min(budget_tokens, original_tokens // 2), asked_for)
    except (UnicodeEncodeError, TypeError, OverflowError, RecursionError):
        return None  # the context holds what JSON cannot say again


class _Maker:
    """Renders one envelope at every stage."""

    def __init__(
        self,
        dataset: Dataset,
        profiles: Sequence[ColumnProfile],
        sample: Sequence[dict[str, Any]],  # Any: JSON scalars
        hints: Sequence[Hint],
        original_tokens: int,
    ) -> None:
        self._dataset = dataset
        self._profiles = profiles
        self._sample = sample
        self._hints = hints
        self._original = original_tokens
        self.durable = False
        self.asked_for = False
        self.age_seconds: int | None = None
        self.full = False

    def fit(self, limit: int, asked_for: bool) -> bytes | None:
        """Return the richest envelope within the limit; one that was asked for is made whatever it takes."""
        total = len(self._dataset.columns)
        if total * _COLUMN_TOKENS <= limit and (body := self.richest(_STAGES, limit)) is not None:
            return body
        for stage in _NARROW_STAGES:
            if (body := self._widest(stage, limit)) is not None:
                return body
        return self.render(_NARROW_STAGES[-1], 0) if asked_for else None

    def richest(self, stages: Sequence[_Stage], limit: int) -> bytes | None:
        """Return the first of the stages that is within the limit with all columns."""
        for stage in stages:
            body = self.render(stage)
            if estimate_tokens_bytes(body) <= limit:
                return body
        return None

    def _widest(self, stage: _Stage, limit: int) -> bytes | None:
        """Return the envelope with as many columns as are within the limit; None when not even one is."""
        best: bytes | None = None
        low, high = 1, min(len(self._dataset.columns), limit // _COLUMN_TOKENS)
        while low <= high:
            count = (low + high) // 2
            body = self.render(stage, count)
            if estimate_tokens_bytes(body) <= limit:
                best, low = body, count + 1
            else:
                high = count - 1
        return best

    def render(self, stage: _Stage, count: int | None = None) -> bytes:
        """Return the envelope with that many columns, by default all."""
        content = self._content(stage, len(self._dataset.columns) if count is None else count)
        content["approxTokensSaved"] = self._original
        used = estimate_tokens_bytes(_encoder.encode(content))
        content["approxTokensSaved"] = max(0, self._original - used)
        return _encoder.encode(content)

    def _content(self, stage: _Stage, count: int) -> dict[str, Any]:  # Any: JSON
        dataset = self._dataset
        columns = dataset.columns[:count]
        content: dict[str, Any] = {  # Any: JSON
            "kind": "loom_dataset_ref",
            "ref": dataset.ref,
            "rows": dataset.rows,
            "approxTokensSaved": 0,
        }
        if self.full:
            content |= {"bytes": dataset.bytes, "pinned": dataset.pinned, "implicit": dataset.implicit}
        if self.age_seconds is not None:
            content["ageSeconds"] = self.age_seconds
        content["schema"] = [
            _entry(column, profile, stage) for column, profile in zip(columns, self._profiles, strict=False)
        ]
        if count < len(dataset.columns):
            content["columnsNotShown"] = _summary(dataset.columns[count:])
        content |= self._sampled(columns, stage)
        content["joinHints"] = [_hint(hint) for hint in self._hints[: stage.hints]]
        content["provenance"] = provenance_of(dataset.provenance, short=stage.short)
        if self.asked_for:
            content["persisted"] = self.durable
        content["context"] = dataset.context
        content |= _others(dataset.also_in, short=stage.short)
        content["usage"] = self._usage(count)
        return content

    def _sampled(self, columns: Sequence[ColumnInfo], stage: _Stage) -> dict[str, Any]:  # Any: JSON
        rows: list[dict[str, Any]] = []
        shortened: dict[str, list[int]] = {}
        for number, row in enumerate(self._sample[: stage.rows]):
            cells: dict[str, Any] = {}
            for column in columns:
                if column.name not in row:
                    continue  # a sample of the first columns only
                cell = row[column.name]
                if isinstance(cell, str) and len(cell) > stage.cell:
                    cell = cut(cell, stage.cell)
                    shortened.setdefault(column.name, []).append(number)
                cells[column.name] = cell
            rows.append(cells)
        return {"sample": rows, "sampleCut": shortened} if shortened else {"sample": rows}

    def _usage(self, count: int) -> str:
        dataset = self._dataset
        lines = [
            f"SELECT {_example(dataset.columns[:count])} FROM {dataset.ref} LIMIT 10",
            "Run such SQL (DuckDB) with loom_query; loom_read gives a whole cell where … cuts one.",
        ]
        if count < len(dataset.columns):
            lines.append(f"loom_describe shows all {len(dataset.columns)} columns.")
        if dataset.alias is not None:
            lines.append(f"{dataset.alias} is the newest result of this tool, {dataset.alias}__all all of them.")
        lines.append(keeping(pinned=dataset.pinned, durable=self.durable))
        return "\n".join(lines)


def keeping(*, pinned: bool, durable: bool) -> str:
    """Say how long a dataset stays, and what keeps it longer."""
    where = "stays in the store file across sessions" if durable else "is session-scoped"
    if pinned and durable:
        said = f"This ref {where} and is never evicted"
    elif pinned:
        said = f"This ref {where}, but never evicted: loom_export writes it to a file, store.path keeps all"
    else:
        said = f"This ref {where} and may be evicted; loom_materialize keeps the result of a SELECT from that"
    return f"{said}. loom_list_datasets shows what exists."


def provenance_of(provenance: Provenance, *, short: bool = False) -> dict[str, Any]:  # Any: JSON
    """Return where a dataset comes from, for JSON; arguments that are long are cut to text when room is short."""
    args: Any = msgspec.Raw(provenance.args)
    if short and len(provenance.args) > _SHOWN_ARGS:
        args = cut(provenance.args.decode(errors="replace"), _SHOWN_ARGS)
    shown_as = {
        "server": provenance.server,
        "tool": provenance.tool,
        "args": args,
        "createdAt": provenance.created_at,
    }
    return shown_as if provenance.source is None else {**shown_as, "source": provenance.source}


def _entry(column: ColumnInfo, profile: ColumnProfile, stage: _Stage) -> dict[str, Any]:  # Any: JSON
    entry: dict[str, Any] = {"name": column.name}
    if column.path and (stage.detail or column.path != f"$.{column.name}"):
        entry["path"] = column.path
    entry["type"] = cut(column.type, MAX_TEXT)
    if stage.detail >= 1:
        entry |= {"nullFraction": profile.null_fraction, "approxDistinct": profile.approx_distinct}
        if not profile.exact:
            entry["approximate"] = True
        entry["uniqueness"] = profile.uniqueness
    if stage.detail >= 2:
        listed = profile.common if stage.detail >= 3 else ()
        whole = (profile.min, profile.max, *(value for value, _ in listed))
        texts = [_short(value, stage) for value in whole]
        entry["min"], entry["max"] = texts[:2]
        if listed:
            entry["values"] = [[text, number] for text, (_, number) in zip(texts[2:], listed, strict=True)]
        if profile.cut or any(text is not value for text, value in zip(texts, whole, strict=True)):
            entry["cut"] = True
    if column.json:
        entry["json"] = True
    if column.lacking:
        entry["lacking"] = column.lacking
    return entry


def _short(value: Any, stage: _Stage) -> Any:  # Any: a JSON scalar
    return cut(value, min(stage.cell, 80)) if isinstance(value, str) else value


def _summary(columns: Sequence[ColumnInfo]) -> dict[str, Any]:  # Any: JSON
    """Count the columns that are not shown, by type."""
    counts: dict[str, int] = {}
    for column in columns:
        kind = column.type.partition("(")[0]
        counts[kind] = counts.get(kind, 0) + 1
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:8]
    return {"count": len(columns), "types": dict(common), "see": "loom_describe"}


def _hint(hint: Hint) -> dict[str, Any]:  # Any: JSON
    shown_as = {
        "column": hint.column,
        "ref": hint.ref,
        "otherColumn": hint.other_column,
        "type": hint.type,
        "reason": hint.reason,
        "overlap": hint.overlap,
    }
    return shown_as if hint.cast is None else {**shown_as, "cast": hint.cast}


def _others(refs: Sequence[str], *, short: bool) -> dict[str, Any]:  # Any: JSON
    if not short or len(refs) <= _SHOWN_REFS:
        return {"alsoIn": list(refs)}
    return {"alsoIn": list(refs[:_SHOWN_REFS]), "alsoInNotShown": len(refs) - _SHOWN_REFS}


def _example(columns: Sequence[ColumnInfo]) -> str:
    """Choose columns for a SELECT: the first two, and the first whose name shows how names are quoted."""
    names = [
        column.name
        for column in columns
        if len(column.name) <= _USAGE_NAME and column.name.isprintable() and " from " not in column.name.casefold()
    ]
    chosen = names[:2] + [name for name in names[2:] if not _PLAIN_NAME.match(name)][:1]
    return ", ".join(quote(name) for name in chosen) or "*"


_TEXT_SIZES = ((1400, 500, 40), (800, 300, 30), (400, 200, 20), (200, 100, 10), (80, 40, 5), (0, 0, 0))


def build_text_envelope(
    dataset: Dataset,
    *,
    lines: int,
    head: str,
    tail: str,
    outline: Sequence[str],
    budget_tokens: int = 2000,
    durable: bool = False,
    age_seconds: int | None = None,
) -> bytes:
    """Return the envelope of a text that is kept whole: where it begins and ends, its parts, and how to read it.

    ``dataset.bytes`` and ``dataset.original_tokens`` are those of the text. Head, tail and outline are shortened
    until it fits the budget and half of the text; a dataset whose provenance alone is larger still gets one.
    """
    limit = min(budget_tokens, dataset.original_tokens // 2)
    body = b""
    for head_size, tail_size, parts in _TEXT_SIZES:
        content: dict[str, Any] = {
            "kind": "loom_text_ref",
            "ref": dataset.ref,
            "bytes": dataset.bytes,
        }  # Any: JSON
        content |= {"lines": lines, "approxTokens": dataset.original_tokens}
        if age_seconds is not None:
            content["ageSeconds"] = age_seconds
        content |= {
            "head": cut(head, head_size) if head_size else "",
            "tail": cut(tail[::-1], tail_size)[::-1] if tail_size else "",
            "outline": [cut(part, 120) for part in outline[:parts]],
        }
        if len(outline) > parts:
            content["outlineNotShown"] = len(outline) - parts
        content["provenance"] = provenance_of(dataset.provenance, short=True)
        content["usage"] = _text_usage(dataset.ref, durable=durable)
        body = _encoder.encode(content)
        if estimate_tokens_bytes(body) <= limit:
            break
    return body


def _text_usage(ref: str, *, durable: bool) -> str:
    return (
        f'The whole text is kept. Read it with loom_read {{"ref": "{ref}", "lines": "1-200"}}, or with "offset" '
        f'or "grep" in place of "lines". {keeping(pinned=False, durable=durable)}'
    )
