"""What `import loom` gives, and what it does not cost."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest
from docs_kit import run_python

import loom
import loom.app
import loom.config
import loom.errors

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.real
def test_importing_loom_loads_nothing_of_weight(tmp_path: Path):
    code = "import loom, sys; print(sorted({'trio', 'msgspec', 'mcp', 'asyncio', 'loom.app'} & set(sys.modules)))"
    done = run_python(code, tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.real
@pytest.mark.parametrize("name", ["open", "serve", "App", "Config"])
def test_a_name_arrives_when_it_is_first_used(tmp_path: Path, name: str):
    done = run_python(
        f"import loom, sys; loom.{name}; print('{name}' in vars(loom), 'trio' in sys.modules)", tmp_path
    )
    assert (done.stdout.split()[0], done.stderr) == ("True", "")


def test_the_names_are_the_real_things():
    assert loom.open is loom.app.open
    assert loom.serve is loom.app.serve
    assert loom.Config is loom.config.Config


def test_every_name_of_the_front_door_is_there():
    assert [name for name in loom.__all__ if not hasattr(loom, name)] == []
    assert set(loom.__all__) <= set(dir(loom))


def test_every_public_error_is_at_the_front_door():
    errors = [
        name
        for name, value in vars(loom.errors).items()
        if inspect.isclass(value) and issubclass(value, loom.errors.LoomError)
    ]
    assert sorted(set(errors) - set(loom.__all__)) == []


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'loom' has no attribute 'opne'"):
        loom.opne  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue] # what is tested is the look-up
