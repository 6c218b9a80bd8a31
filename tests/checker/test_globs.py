"""Patterns for paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pscdsl._src.checker.selection import matches

TABLE = [
    ("a.py", "a.py", True),
    ("a.py", "x/y/a.py", True),
    ("a.py", "ba.py", False),
    ("/a.py", "a.py", True),
    ("/a.py", "x/a.py", False),
    ("*.py", "x/a.py", True),
    ("x/*.py", "x/a.py", True),
    ("x/*.py", "x/y/a.py", False),
    ("x/*.py", "z/x/a.py", False),
    ("x/**", "x/y/a.py", True),
    ("x/**/*.py", "x/a.py", True),
    ("x/**/*.py", "x/y/z/a.py", True),
    ("**/x/*.py", "x/a.py", True),
    ("**/x/*.py", "y/x/a.py", True),
    ("tests", "tests/a.py", True),
    ("tests/", "x/tests/a.py", True),
    ("./tests", "tests/a.py", True),
    ("./tests", "x/tests/a.py", False),
    ("tests", "mytests/a.py", False),
    ("a?.py", "ab.py", True),
    ("a?.py", "a/.py", False),
    ("a[bc].py", "ac.py", True),
    ("a[!bc].py", "ac.py", False),
    ("a[!bc].py", "ad.py", True),
    ("a[.py", "a[.py", True),
    ("a[[].py", "a[.py", True),
    ("a.py", "aXpy", False),
    ("a*b*c.py", "aXXbYYc.py", True),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), TABLE)
def test_what_a_pattern_means(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


NAME = st.text(alphabet="abc.-_()+^$|\\{}~& é", min_size=1, max_size=6).filter(
    lambda name: name.strip(".") != ""
)


@given(st.lists(NAME, min_size=1, max_size=4), st.lists(NAME, max_size=2))
def test_a_name_without_wildcards_means_itself_and_what_is_below(
    names: list[str], below: list[str]
) -> None:
    path = "/".join(names)
    assert matches("/" + path, path)
    assert matches("/" + path, "/".join([*names, *below]))
    assert not matches("/" + path, path + "x")
    assert matches(names[-1], path)


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_pattern_gives_an_answer(pattern: str, path: str) -> None:
    assert matches(pattern, path) in (True, False)
