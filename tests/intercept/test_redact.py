"""What provenance shows of arguments: no secret in whatever place and spelling, and nothing long."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.intercept._redact import MOST_CHARS, OMITTED, REDACTED, redact_arguments


def shown(arguments: Any) -> Any:
    body, _ = redact_arguments(json.dumps(arguments).encode(), denied=False)
    return json.loads(body)


SECRET_KEYS = [
    "token", "access_token", "accessToken", "Access-Token", "TOKEN", "id_token", "refreshToken", "secret",
    "client_secret", "clientSecret", "password", "Password", "userPassword", "passwd", "pwd", "db_pwd", "api_key",
    "apiKey", "api-key", "API KEY", "apikey", "X-Api-Key", "authorization", "Authorization", "bearer",
    "credential",
    "credentials", "awsCredentials", "cookie", "Set-Cookie", "private_key", "privateKey", "privatekey",
    "passphrase",
]  # fmt: skip


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_the_value_under_a_secret_key_is_hidden_at_any_depth(key: str):
    assert shown({key: "v4lue-x"}) == {key: REDACTED}
    assert shown({"a": [{"b": {key: ["v4lue-x", 1]}}]}) == {"a": [{"b": {key: REDACTED}}]}
    assert shown({key: 12345}) == {key: REDACTED}


@pytest.mark.parametrize(
    "key",
    [
        "tokens_used",
        "max_tokens",
        "maxTokens",
        "prompt_tokens",
        "token_count",
        "tokenLimit",
        "keyword",
        "key",
        "monkey",
    ],
)
def test_a_count_of_tokens_and_an_ordinary_word_are_shown(key: str):
    assert shown({key: 5}) == {key: 5}


SECRET_VALUES = [
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcDEF123",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIB",
    "sk-proj-abcdefghijklmnopqrst",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "https://user:hunter2@example.org/x",
    "postgres://app:s3cr3t@db:5432/x",
    "Bearer abcdefghijklmnop",
    "xoxb-123456789012-abcdefghij",
]


@pytest.mark.parametrize("value", SECRET_VALUES)
def test_a_value_that_looks_like_a_key_is_hidden_wherever_it_stands(value: str):
    assert shown({"note": value}) == {"note": REDACTED}
    assert value not in json.dumps(shown({"list": [f"see {value} there"], value: 1}))


def test_long_strings_are_cut_and_say_so():
    assert shown({"q": "x" * 500}) == {"q": "x" * (MOST_CHARS - 1) + "…"}


def test_arguments_that_are_long_in_all_are_shortened():
    body, kept = redact_arguments(json.dumps({f"k{n}": "y" * 150 for n in range(200)}).encode(), denied=False)
    assert len(body) < 5000
    assert kept == {}


def test_a_denied_tool_shows_nothing():
    assert redact_arguments(b'{"a":1}', denied=True) == (json.dumps(OMITTED).encode(), {})


def test_only_arguments_that_stay_as_they_are_become_columns():
    arguments = {
        "page": 2,
        "q": "x",
        "api_key": "k",
        "long": "z" * 300,
        "nested": {"a": 1},
        "flag": True,
        "none": None,
    }
    _, kept = redact_arguments(json.dumps(arguments).encode(), denied=False)
    assert kept == {"page": 2, "q": "x", "flag": True}


@pytest.mark.parametrize("raw", [b"", b"{", b"[" * 5000, b'{"a":"\\ud800"}', b"\xff"])
def test_what_cannot_be_read_is_omitted(raw: bytes):
    assert redact_arguments(raw, denied=False) == (json.dumps(OMITTED).encode(), {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.sampled_from(SECRET_KEYS), st.sampled_from(SECRET_VALUES))
def test_no_secret_survives_in_any_company(value: Any, key: str, secret: str):
    body, kept = redact_arguments(
        json.dumps({"x": value, key: "hidden-one", "y": [secret]}).encode(), denied=False
    )
    assert b"hidden-one" not in body
    assert json.dumps(secret)[1:-1].encode() not in body
    assert secret not in json.dumps(kept)
