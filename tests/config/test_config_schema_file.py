"""The schema that ships in the wheel is the one the code checks with."""

from __future__ import annotations

import json
from pathlib import Path

import loom
from loom.config import json_schema


def test_the_shipped_schema_is_the_generated_one():
    shipped = Path(loom.__file__).parent / "config" / "loom.schema.json"
    assert json.loads(shipped.read_text(encoding="utf-8")) == json.loads(json.dumps(json_schema())), (
        "regenerate it: python -m loom schema > loom/config/loom.schema.json"
    )
