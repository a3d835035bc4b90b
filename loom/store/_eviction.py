"""What the engine holds for its datasets, and which of them go when that is more than it may hold.

A dataset's bytes are measured inside the transaction that makes it, where nothing else is written. The budget is
held by their sum, not by a look at the whole engine: while a reader keeps an old snapshot, what was dropped is not
freed, and looking again after each drop would take one dataset after the other without an effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loom.store._messages import Refusal

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from loom.store._engine import Engine
    from loom.store._model import Dataset

_LEAST_SHARE = 8  # a table holds at least this part of what was handed over, whatever was freed in the meantime


def victims(datasets: Iterable[Dataset], *, budget: int, spare: Container[str]) -> list[Dataset]:
    """Choose what goes, in that order, until the rest holds the budget or only what is spared is left.

    Query results that nobody asked for go first, then the least recently used. What is pinned or in ``spare``
    stays.
    """
    there = list(datasets)
    held = sum(dataset.bytes for dataset in there)
    free = [dataset for dataset in there if not dataset.pinned and dataset.ref not in spare]
    chosen: list[Dataset] = []
    for dataset in sorted(free, key=lambda each: (not each.implicit, each.used_at)):
        if held <= budget:
            break
        chosen.append(dataset)
        held -= dataset.bytes
    return chosen


def settle(fresh: Sequence[Dataset], held: int) -> None:
    """Set the bytes of datasets that a checkpoint has packed: ``held`` is shared out by what they had before."""
    before = sum(dataset.bytes for dataset in fresh)
    if held >= before:
        return  # some of it is of datasets that are dropped and not freed yet
    for dataset in fresh:
        dataset.bytes = max(1, dataset.bytes * held // before)


def over_budget(size: int, budget: int) -> Refusal:
    """Refuse what would be above the budget all by itself."""
    return Refusal(
        code="over_budget",
        what=f"the dataset alone would hold {size:,} bytes, and memoryBudgetBytes is {budget:,}",
        advice="Ask for fewer rows or columns, or raise memoryBudgetBytes.",
    )


class Gauge:
    """Measures a table while it is made, and the file of a store.

    In memory a dataset holds what its table takes there. In a file it holds that too until the next checkpoint,
    and the blocks that a large table has written ahead; from then on its part of the file's blocks.
    """

    def __init__(self, engine: Engine, *, in_file: bool) -> None:
        self._engine = engine
        self._in_file = in_file
        self._before = 0

    def start(self) -> None:
        """Remember what is held now."""
        self._before = self._held()

    def growth(self, handed_over: int) -> int:
        """Return the bytes held since ``start``; ``handed_over`` is what the new table was made from."""
        # A reader that ends in between frees what it kept: then the difference says too little.
        return max(self._held() - self._before, handed_over // _LEAST_SHARE)

    def in_file(self) -> int:
        """Return the bytes of all blocks of the file that are in use."""
        return self._number("SELECT used_blocks * block_size FROM pragma_database_size()")

    def _held(self) -> int:
        memory = self._number(
            "SELECT coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory() "
            "WHERE tag = 'IN_MEMORY_TABLE'"
        )
        return memory + (self.in_file() if self._in_file else 0)

    def _number(self, sql: str) -> int:
        (number,) = self._engine.root.execute(sql).fetchone() or (0,)
        return int(number)
