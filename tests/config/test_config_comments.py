"""Comments and trailing commas: what goes, and what must stay."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.config._comments import blank_comments
from loom.config._locate import locate_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
TRICKY = st.text(alphabet='/*\\",{}[]: \n\tab')
NOISE = st.sampled_from(["", " ", '// c, ] } "\n', '/* , ] } " // */', "/**/", "\n", "/* \n */", "//\n"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, // x\n}', '{"a": 1      \n}'),
        ("[1, /* x */ ]", "[1          ]"),
        ('["//", "/*", "*/", ",]",]', '["//", "/*", "*/", ",]" ]'),
        ('["\\\\", "\\"//"]', '["\\\\", "\\"//"]'),
        ("[1,]", "[1 ]"),
        ("[[1,],]", "[[1 ] ]"),
        ("/* a\nb */ 1", "    \n     1"),
    ],
)
def test_comments_and_trailing_commas_become_blanks(text, expected):
    assert blank_comments(text) == expected


@pytest.mark.parametrize(
    "text", ["[,]", "{,}", "[1,,]", '{"a":,}', "[,1]", "[1 2]", "/* open", '["open]', "// only"]
)
def test_what_is_wrong_without_comments_stays_wrong(text):
    with pytest.raises(json.JSONDecodeError):
        json.loads(blank_comments(text))


@given(VALUES, st.sampled_from([None, 1]))
def test_text_without_comments_stays_as_it_is(value, indent):
    text = json.dumps(value, indent=indent)
    assert json.loads(blank_comments(text)) == json.loads(text)
    assert blank_comments(text) == text


@given(st.lists(TRICKY))
def test_the_content_of_strings_never_changes(strings):
    text = json.dumps(strings)
    assert blank_comments(text) == text


def render(value, noise):
    """Write JSON with noise between all tokens and a comma after the last element."""
    gap = next(noise)
    if isinstance(value, dict):
        inner = "".join(f"{render(k, noise)}:{render(v, noise)},{next(noise)}" for k, v in value.items())
        return f"{gap}{{{next(noise)}{inner}}}"
    if isinstance(value, list):
        return f"{gap}[{next(noise)}" + "".join(f"{render(item, noise)}," for item in value) + f"{next(noise)}]"
    return f"{gap}{json.dumps(value)}{next(noise)}"


@given(st.lists(TRICKY | st.dictionaries(TRICKY, TRICKY | st.integers())), st.lists(NOISE, min_size=1))
def test_comments_anywhere_change_nothing(value, noise):
    def forever():
        while True:
            yield from noise

    text = render(value, forever())
    blanked = blank_comments(text)
    assert json.loads(blanked) == value
    assert len(blanked) == len(text)
    assert blanked.count("\n") == text.count("\n")


@given(VALUES)
def test_every_key_and_element_has_its_line(value):
    text = json.dumps(value, indent=1)
    located = locate_json(text)
    lines = text.splitlines()
    assert located.duplicates == []
    for path, line in located.lines.items():
        found = value
        for key in path:
            found = found[key]
        if path and isinstance(path[-1], str):
            assert lines[line - 1].strip().startswith(json.dumps(path[-1]))
