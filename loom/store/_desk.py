"""The parts of one engine, and what several questions need of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loom.store._describe import outline
from loom.store._envelope import build_envelope, build_text_envelope, fetch_sample
from loom.store._naming import quote
from loom.store._profile import profile
from loom.store._query import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.store._engine import Engine
    from loom.store._hints import Sketches
    from loom.store._messages import EngineSettings
    from loom.store._model import Dataset
    from loom.store._registry import Registry
    from loom.store._runner import Control

_ENDS = 1500  # characters of head and tail


class Desk:
    """Engine, registry and sketches of one worker."""

    def __init__(
        self,
        settings: EngineSettings,
        engine: Engine,
        registry: Registry,
        sketches: Sketches,
        now: Callable[[], float],
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.registry = registry
        self.sketches = sketches
        self.now = now

    @property
    def persistent(self) -> bool:
        """Whether datasets outlive loom."""
        return self.settings.store_folder is not None

    def envelope(self, dataset: Dataset, *, original_tokens: int, asked_for: bool = False) -> bytes | None:
        """Return the envelope of a new dataset; None when its context does not fit into one."""
        cursor = self.engine.cursor()
        try:
            profiles = profile(cursor, dataset.ref, dataset.columns, dataset.rows)
            sample = fetch_sample(cursor, dataset)
            self.sketches.add(dataset.ref, cursor, dataset, profiles)
            hints = self.sketches.hints_for(dataset.ref, cursor)
        finally:
            cursor.close()
        return build_envelope(
            dataset,
            profiles,
            sample,
            hints,
            original_tokens=original_tokens,
            durable=self.persistent,
            asked_for=asked_for,
        )

    def text_envelope(self, dataset: Dataset, text: str) -> bytes:
        """Return the envelope of a text that was kept whole."""
        return build_text_envelope(
            msgspec.structs.replace(dataset, bytes=len(text.encode())),
            lines=text.count("\n") + 1,
            head=text[:_ENDS],
            tail=text[-_ENDS:] if len(text) > _ENDS else "",
            outline=outline(text),
            durable=self.persistent,
        )

    def describe_text(self, dataset: Dataset, control: Control) -> bytes:
        """Return the envelope of a text that is there, made anew."""
        with reading(self.engine, control) as cursor:
            rows = cursor.execute(f"SELECT text FROM {quote(dataset.ref)} ORDER BY line").fetchall()
        return self.text_envelope(dataset, "\n".join(text for (text,) in rows))

    def forget(self, ref: str) -> None:
        """Take back a dataset that nobody has heard of."""
        with self.engine.write_lock:
            self.registry.discard(ref)
        self.sketches.remove(ref)
