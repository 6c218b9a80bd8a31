"""Placements of arrays: the notation, and what is refused."""

from __future__ import annotations

import pytest

from pscdsl.typing.placements import Placement


@pytest.mark.parametrize(
    ("text", "axes", "shown"),
    [
        ("", (), ""),
        ("n d", ((), ()), "_ _"),
        ("n@data d", (("data",), ()), "_@data _"),
        ("(n + 1)@data d", (("data",), ()), "_@data _"),
        ("data*m@data d", (("data",), ()), "_@data _"),
        ("n@data@model d", (("data", "model"), ()), "_@data@model _"),
        ("_@model  _@data", (("model",), ("data",)), "_@model _@data"),
    ],
)
def test_notation(text: str, axes: tuple[tuple[str, ...], ...], shown: str) -> None:
    placement = Placement.parse(text)
    assert placement == Placement(axes)
    assert str(placement) == shown
    assert Placement.parse(shown) == placement
    assert placement.rank == len(axes)


def test_whole_arrays_have_no_pieces() -> None:
    assert Placement.whole(2) == Placement.parse("n d")
    assert Placement.whole(2).is_whole
    assert not Placement.parse("n@data").is_whole


def test_cuts_are_products_of_mesh_axes() -> None:
    sizes = {"data": 4, "model": 2, "pipe": 3}
    assert Placement.parse("a@data@model b c@pipe").cuts(sizes) == (8, 1, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n@data d@data", "placement `n@data d@data` is not right: the mesh axis `data` cuts more"),
        ("n@data@data", "the mesh axis `data` cuts more than one axis"),
        ("@data d", "expected a size before `@`"),
        ("n@ d", "expected the name of a mesh axis after `@`"),
        ("n@data@", "expected the name of a mesh axis after `@`"),
        ("n@2", "expected the name of a mesh axis after `@`"),
        ("*batch@data", "a mesh axis cuts one axis, not a group of them"),
        ("(n + 1@data", r"`\(` is never closed"),
    ],
)
def test_what_is_no_placement(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Placement.parse(text)


def test_an_axis_is_used_once() -> None:
    with pytest.raises(ValueError, match="`data` is used more than once in `_@data _@data`"):
        Placement((("data",), ("data",)))
