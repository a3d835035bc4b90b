"""The estimate of tokens against a real tokenizer, on texts that it was not fitted to."""

from __future__ import annotations

import inspect
import json
import math
import random
import textwrap
import uuid
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.tabular._tokens import estimate_tokens, estimate_tokens_bytes

bpe_openai = pytest.importorskip("bpe_openai", reason="the real tokenizer is an optional package")
ENCODING = bpe_openai.get_encoding("o200k_base")

WITHIN = 0.15  # the specification's mark
CORPUS = Path(__file__).parent / "corpus"
MODULES = ("json.decoder", "argparse", "heapq", "inspect", "difflib", "tarfile", "statistics", "textwrap")


def source(name: str) -> str:
    return inspect.getsource(import_module(name))


def prose() -> str:
    """Return the explanations in modules of the standard library that consist of whole sentences."""
    names = (
        "decimal",
        "random",
        "pickle",
        "optparse",
        "doctest",
        "bisect",
        "contextlib",
        "functools",
        "logging",
        "ast",
    )
    docs = [inspect.getdoc(import_module(name)) or "" for name in names]
    for name in names:
        docs += [inspect.getdoc(value) or "" for value in vars(import_module(name)).values() if callable(value)]
    paragraphs = [part for doc in docs for part in doc.split("\n\n")]
    sentences = [
        part for part in paragraphs if len(part) > 120 and ">>>" not in part and part.strip().endswith(".")
    ]
    return "\n\n".join(textwrap.dedent(part) for part in dict.fromkeys(sentences))


def records(kind: str, chance: random.Random) -> list[object]:
    names = ["Annabel Lee", "Boris Godunov", "Chiara Rossi", "Dmitri Ivanov", "Élodie Martin", "Fatima Zahra"]
    towns = ["Lisbon", "Oslo", "Nairobi", "São Paulo", "Kyoto", "Montréal"]
    match kind:
        case "customers":
            return [
                {
                    "customerId": 10_000 + n,
                    "name": chance.choice(names),
                    "city": chance.choice(towns),
                    "since": f"20{chance.randint(10, 24)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
                    "balance": round(chance.uniform(-500, 5000), 2),
                    "active": chance.random() < 0.7,
                    "note": None,
                }
                for n in range(120)
            ]
        case "measurements":
            return [
                {"t": 1_700_000_000 + 60 * n, "value": chance.gauss(20, 3), "sensor": f"s-{n % 7}"}
                for n in range(200)
            ]
        case "keys":
            return [
                {"id": str(uuid.UUID(int=chance.getrandbits(128))), "sha": f"{chance.getrandbits(160):040x}"}
                for _ in range(120)
            ]
        case "events":
            return [
                {
                    "event": {"type": chance.choice(["push", "pull_request", "issue_comment"]), "id": n * 7919},
                    "actor": {"login": f"user{n % 13}", "url": f"https://api.example.com/users/user{n % 13}"},
                    "labels": ["bug", "help wanted"][: n % 3],
                    "created_at": f"2023-07-{n % 28 + 1:02}T08:{n % 60:02}:00Z",
                }
                for n in range(120)
            ]
        case _:
            parts = prose().split("\n\n")
            return [{"page": n, "text": parts[n % len(parts)], "lang": "en"} for n in range(40)]


JSON_KINDS = ("customers", "measurements", "keys", "events", "documents")
JSON_STYLES: dict[str, Any] = {  # Any: keyword arguments of json.dumps
    "minified": {"separators": (",", ":")},
    "plain": {},
    "indented": {"indent": 2},
}


def json_text(kind: str, style: str) -> str:
    return json.dumps(records(kind, random.Random(99)), ensure_ascii=False, **JSON_STYLES[style])


def read(name: str) -> str:
    return (CORPUS / name).read_text(encoding="utf-8")


def mixed() -> str:
    return "\n\n".join(
        [
            prose()[:4000],
            read("chinese.txt"),
            source("heapq")[:4000],
            read("japanese.txt"),
            json_text("events", "plain"),
        ]
    )


def error(text: str) -> float:
    return estimate_tokens(text) / len(ENCODING.encode_ordinary(text)) - 1


CLASSES = {
    "code": lambda: "\n".join(map(source, MODULES)),
    "prose": prose,
    "chinese": lambda: read("chinese.txt"),
    "japanese": lambda: read("japanese.txt"),
    "json": lambda: "\n".join(json_text(kind, style) for kind in JSON_KINDS for style in JSON_STYLES),
    "mixed": mixed,
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_estimate_is_within_the_mark_for_each_class(name: str):
    text = CLASSES[name]()
    assert len(text) >= 1_500
    assert abs(error(text)) <= WITHIN


@pytest.mark.parametrize("kind", JSON_KINDS)
@pytest.mark.parametrize("style", JSON_STYLES)
def test_the_estimate_is_within_the_mark_for_each_style_of_json(kind: str, style: str):
    assert abs(error(json_text(kind, style))) <= WITHIN


@pytest.mark.parametrize("name", MODULES)
def test_the_estimate_is_within_the_mark_for_each_source_file(name: str):
    assert abs(error(source(name))) <= WITHIN


def test_the_mark_can_be_missed():
    assert abs(estimate_tokens(prose()) / len(ENCODING.encode_ordinary(read("chinese.txt"))) - 1) > WITHIN


# --- how it behaves --------------------------------------------------------------------------------


def test_only_an_empty_text_has_no_tokens():
    assert estimate_tokens("") == estimate_tokens_bytes(b"") == 0
    assert estimate_tokens(" ") == estimate_tokens_bytes(b"\x80") == 1


@given(st.text(st.characters()))
def test_any_text_has_an_estimate_and_no_more_than_three_for_a_character(text: str):
    assert bool(text) <= estimate_tokens(text) <= 3 * len(text) + 1


def test_a_lone_surrogate_is_a_character():
    assert estimate_tokens("\ud800 and more") >= 2


def test_bytes_and_views_count_as_their_text():
    text = read("japanese.txt")
    assert estimate_tokens_bytes(text.encode()) == estimate_tokens(text)
    assert estimate_tokens_bytes(memoryview(text.encode())) == estimate_tokens(text)


@pytest.mark.parametrize("times", [1, 60])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_json_string_counts_as_what_it_stands_for(times: int, ascii_only: bool):
    text = json_text("customers", "indented") * times + read("chinese.txt")
    estimate = estimate_tokens_bytes(json.dumps(text, ensure_ascii=ascii_only).encode())
    assert math.isclose(estimate, estimate_tokens(text), rel_tol=0.05)


@pytest.mark.parametrize("data", [b'"', b'""', b'"a" "b"', b'"\xff"', b'"\\x"', b'"a","b"'])
def test_what_only_looks_like_a_json_string_counts_as_it_is(data: bytes):
    assert estimate_tokens_bytes(data) <= len(data)


@pytest.mark.parametrize("name", CLASSES)
def test_a_large_text_is_estimated_by_its_parts(name: str):
    text = CLASSES[name]()
    small = text[:20_000]
    large = small * (1_500_000 // len(small))
    assert math.isclose(estimate_tokens(large) / len(large), estimate_tokens(small) / len(small), rel_tol=0.05)
