"""Names of columns: kept as they are in any script, and told apart where the engine could not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNNAMED = "unnamed"


def unique_names(wanted: Sequence[str]) -> list[str]:
    """Return a name for each wanted one, in order, no two equal when case is folded.

    The first that wants a name has it as it is, also when a later one is called like a name with a suffix; the
    others get ``_2``, ``_3``, … An empty name becomes ``unnamed``. NUL becomes ``_``: C strings end there.
    """
    names = [name.replace("\0", "_") or _UNNAMED for name in wanted]
    folded = [_fold(name) for name in names]
    owners: dict[str, int] = {}
    for position, key in enumerate(folded):
        owners.setdefault(key, position)
    numbers: dict[str, int] = {}
    for position, key in enumerate(folded):
        if owners[key] == position:
            continue
        number = numbers.get(key, 1) + 1
        while _fold(f"{names[position]}_{number}") in owners:
            number += 1
        numbers[key] = number
        names[position] = f"{names[position]}_{number}"
        owners[_fold(names[position])] = position
    return names


def _fold(name: str) -> str:
    # The engine folds ASCII only; a reader takes É and é for one name as well.
    return name.lower()
