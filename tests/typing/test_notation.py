"""The text inside a shape annotation."""

from __future__ import annotations

import pytest

from pscdsl.typing.dims import name
from pscdsl.typing.placements import ShapeSyntaxError
from pscdsl.typing.signatures import Anonymous, DimSpec, Variadic, parse_shape

n, d = name("n"), name("d")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("  ", ()),
        ("n", (n,)),
        ("n d+1", (n, d + 1)),
        (" n\td \n", (n, d)),
        ("3 2*n n//2 n%8", (3, 2 * n, n // 2, n % 8)),
        ("(n + 1)//2 min(n, d)", ((n + 1) // 2, parse_shape("min(n,d)")[0])),
        ("_ _", (Anonymous(), Anonymous())),
        ("*batch n", (Variadic("batch"), n)),
        ("... n", (Variadic(None), n)),
        ("*_ n", (Variadic(None), n)),
        ("channels=4 n", (4, n)),
        ("half=n//2", (n // 2,)),
        ("0", (0,)),
    ],
)
def test_shapes(text: str, expected: tuple[DimSpec, ...]) -> None:
    assert parse_shape(text) == expected


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("n, d", 1, "separated by spaces"),
        ("n #d", 2, "broadcastable"),
        ("n ?d", 2, "per leaf"),
        ("n d/2", 3, "use `//`"),
        ("n (d", 2, "never closed"),
        ("n d)", 3, "unmatched"),
        ("n d +", 4, "spaces separate sizes"),
        ("n *2", 3, "expected a name after"),
        ("n -3", 2, "never negative"),
        ("n 2=3", 2, "expected a name before"),
        ("n c=", 4, "expected a name or a number"),
        ("n d**2", 4, "expected a name or a number"),
        ("n $", 2, "has no meaning"),
    ],
)
def test_errors_say_where_and_what_is_allowed(text: str, offset: int, message: str) -> None:
    with pytest.raises(ShapeSyntaxError, match=message) as caught:
        parse_shape(text)
    assert caught.value.offset == offset


def test_unsupported_notation_names_the_alternatives() -> None:
    with pytest.raises(ShapeSyntaxError, match=r"`\*batch` or `\.\.\.`"):
        parse_shape("#n")


def test_specs_read_back() -> None:
    specs = parse_shape("n d+1 _ *batch ...")
    assert parse_shape(" ".join(map(str, specs))) == specs
