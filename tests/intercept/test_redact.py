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


@pytest.mark.parametrize("value", [1, 0, True, False, None, "", [], {}, 1.5, {"a": "b"}])
def test_whatever_stands_under_a_secret_key_is_hidden(value: Any):
    body, kept = redact_arguments(json.dumps({"password": value, "api_key": value}).encode(), denied=False)
    assert json.loads(body) == {"password": REDACTED, "api_key": REDACTED}
    assert kept == {}


FULL_WIDTH = "".join(chr(ord(char) + 0xFEE0) for char in "password")


@pytest.mark.parametrize(
    "key",
    ["mytokenvalue", "authtokenv2", "TOKENs", "dbpwd", FULL_WIDTH, "pässword", "API.key", "x" * 5000 + "secret"],
)
def test_a_secret_key_is_known_in_any_spelling(key: str):
    assert list(shown({key: "v4lue-x"}).values()) == [REDACTED]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("new_token", "abc"),
        ("new_token", 123456),
        ("input_token", "abc"),
        ("token", 5),
        ("tokens", 5),
        ("tokens", ["a"]),
        ("max_tokens", "abc"),
        ("max_tokens", {"a": "b"}),
        ("token_id", 7),
        ("page_token", "abc"),
    ],
)
def test_a_token_is_told_from_a_number_of_tokens_by_its_value_too(key: str, value: Any):
    assert shown({key: value}) == {key: REDACTED}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_new_tokens", 3),
        ("maxtokens", 3),
        ("TOKEN_LIMIT", 3),
        ("max_tokens", "100"),
        ("token_usage", {"prompt": 5, "completion": [7, None]}),
        ("totalTokens", 1.5),
    ],
)
def test_numbers_of_tokens_are_shown_in_any_spelling(key: str, value: Any):
    assert shown({key: value}) == {key: value}


@pytest.mark.parametrize(
    "value",
    [
        "redis://:hunter2@h/0",
        "https://bob@example.org",
        "postgres://u:p/w@host/db",
        "see https%3A%2F%2Fbob%3Apw%40h",
        "x_ghp_abcdefghijklmnopqrstuv",
        "sk-12345678",
        "https://h/x?a=1&api_key=abc",
        "Server=x;Password=hunter2;",
        '{"user": "x", "password": "hunter2"}',
        '"{\\"token\\": \\"abc\\"}"',
        "Authorization: hunter2",
        "curl -H 'Cookie: sid=1' h",
        "mysql --password hunter2 -u x",
        "Basic dXNlcjpwYXNz",
    ],
)
def test_a_secret_inside_a_text_hides_the_text(value: str):
    body, kept = redact_arguments(json.dumps({"v": value}).encode(), denied=False)
    assert json.loads(body) == {"v": REDACTED}
    assert kept == {}


@pytest.mark.parametrize(
    "value",
    [
        "how do I reset my password?",
        "SELECT max_tokens FROM t WHERE max_tokens=5",
        "npm-check-updates",
        "basic authentication",
        "sk-learn",
        "ASIAPACIFICREGION",
        "https://example.org:8080/a@b?x=1",
        "http://localhost:3000/@user/post",
        "git@github.com:a/b.git",
        "write to a@b.org",
        "//share/folder",
    ],
)
def test_an_ordinary_text_is_shown(value: str):
    assert redact_arguments(json.dumps({"v": value}).encode(), denied=False)[1] == {"v": value}


def test_names_and_values_side_by_side_are_known():
    headers = {"headers": [{"name": "Authorization", "value": "hunter2"}, {"name": "Accept", "value": "text"}]}
    assert shown(headers)["headers"] == [
        {"name": "Authorization", "value": REDACTED},
        {"name": "Accept", "value": "text"},
    ]
    assert shown({"h": [["Cookie", "hunter2"], ["Accept", "text"]]})["h"] == [
        ["Cookie", REDACTED],
        ["Accept", "text"],
    ]
    assert shown({"argv": ["run", "--token", "hunter2", "--max-tokens", "5"]})["argv"] == [
        "run",
        "--token",
        REDACTED,
        "--max-tokens",
        "5",
    ]
    assert shown({"columns": ["password", "email"]}) == {"columns": ["password", "email"]}


def test_a_secret_at_the_cut_of_a_long_text_hides_it():
    assert shown({"v": "x" * 195 + " ghp_" + "a" * 36}) == {"v": REDACTED}


def test_numbers_keep_their_digits_and_only_exact_ones_become_columns():
    raw = b'{"big":123456789012345678901234,"long":0.12345678901234567890,"price":1.50,"n":9223372036854775807}'
    body, kept = redact_arguments(raw, denied=False)
    assert body == raw
    assert kept == {"price": 1.5, "n": 2**63 - 1}


@pytest.mark.parametrize(
    "arguments",
    [
        {"rows": [[n, n] for n in range(100_000)], "page": 2},
        {"rows": {str(n): n for n in range(100_000)}, "page": 2},
        {"text": '\\"é😀' * 100_000, "page": 2},
        {"text": "😀" * 100_000, "page": 2},
    ],
)
def test_long_arguments_cost_little_and_the_others_are_still_shown(arguments: Any):
    for ascii_only in (True, False):
        body, kept = redact_arguments(json.dumps(arguments, ensure_ascii=ascii_only).encode(), denied=False)
        assert json.loads(body)["page"] == 2
        assert kept == {"page": 2}
        assert len(body) < 5000


def test_what_stands_for_a_long_argument_is_no_argument_itself():
    _, kept = redact_arguments(json.dumps({"rows": list(range(100_000)), "same": "[long]"}).encode(), denied=False)
    assert kept == {"same": "[long]"}


@pytest.mark.parametrize("arguments", [{str(n): n for n in range(5_000)}, "x" * 100_000, list(range(50_000))])
def test_arguments_too_long_in_all_show_nothing(arguments: Any):
    assert redact_arguments(json.dumps(arguments).encode(), denied=False) == (b'"[long]"', {})


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_answered(raw: bytes, denied: bool):
    body, _ = redact_arguments(raw, denied=denied)
    json.loads(body)


@given(JSON, st.text(max_size=30), st.sampled_from(SECRET_VALUES), st.text(alphabet=" .,;(\n", max_size=5))
def test_a_secret_value_never_comes_through_in_any_text(value: Any, around: str, secret: str, between: str):
    text = f"{around}{between or ' '}{secret}"
    body, kept = redact_arguments(json.dumps({"a": [value, {"b": text}], "c": text}).encode(), denied=False)
    found = json.loads(body)
    assert secret not in json.dumps([found, kept], ensure_ascii=False)
