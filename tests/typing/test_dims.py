"""Sizes: the operators against Python's integers, the normal form, the text form."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl.typing.dims import (
    Dim,
    DimSyntaxError,
    DimTooLarge,
    MissingSize,
    Size,
    evaluate,
    maximum,
    minimum,
    name,
    names,
    parse,
    show,
    substitute,
)

n, m, k = name("n"), name("m"), name("k")

OPERATORS: dict[str, tuple[Callable[[Size, Size], Size], Callable[[int, int], int]]] = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "//": (lambda a, b: a // b, lambda a, b: a // b),
    "%": (lambda a, b: a % b, lambda a, b: a % b),
    "min": (minimum, min),
    "max": (maximum, max),
}

Tree = int | str | tuple[str, "Tree", "Tree"]
"""An expression as written, before any normalisation."""

leaves = st.one_of(st.integers(-4, 12), st.sampled_from(["n", "m", "k"]))
trees: st.SearchStrategy[Tree] = st.recursive(
    leaves, lambda t: st.tuples(st.sampled_from(sorted(OPERATORS)), t, t), max_leaves=7
)
polynomials: st.SearchStrategy[Tree] = st.recursive(
    leaves, lambda t: st.tuples(st.sampled_from(["+", "-", "*"]), t, t), max_leaves=8
)
environments = st.fixed_dictionaries({key: st.integers(-6, 15) for key in "nmk"})


def build(tree: Tree) -> Size:
    """The size that a tree denotes."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return name(tree)
    return OPERATORS[tree[0]][0](build(tree[1]), build(tree[2]))


def compute(tree: Tree, env: dict[str, int]) -> int:
    """The number that a tree denotes, by Python's own operators."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return env[tree]
    return OPERATORS[tree[0]][1](compute(tree[1], env), compute(tree[2], env))


@settings(max_examples=1500, deadline=None)
@given(trees, environments)
def test_operators_mean_what_python_means(tree: Tree, env: dict[str, int]) -> None:
    try:
        expected = compute(tree, env)
    except ZeroDivisionError:
        return
    assert evaluate(build(tree), env) == expected


@settings(max_examples=800, deadline=None)
@given(trees)
def test_text_reads_back(tree: Tree) -> None:
    try:
        size = build(tree)
    except ZeroDivisionError:
        return
    assert " " not in show(size)
    assert parse(show(size)) == size
    assert isinstance(size, int) or names(size)


@settings(max_examples=800, deadline=None)
@given(polynomials, polynomials)
def test_equal_polynomials_are_structurally_equal(left: Tree, right: Tree) -> None:
    a, b = build(left), build(right)
    # The degree in each name is at most 8, so a grid of 9 values a name decides equality.
    grid = range(9)
    points = (dict(zip("nmk", point, strict=True)) for point in itertools.product(grid, repeat=3))
    same = all(evaluate(a, env) == evaluate(b, env) for env in points)
    assert (a == b) == same
    assert (a - b == 0) == same
    if same:
        assert hash(a) == hash(b)
    assert build(("*", left, right)) == build(("*", right, left))
    assert (a + b) * (a - b) == a * a - b * b


@settings(max_examples=400, deadline=None)
@given(trees, trees, environments)
def test_substitution_commutes_with_evaluation(
    tree: Tree, inner: Tree, env: dict[str, int]
) -> None:
    try:
        size, replacement = build(tree), build(inner)
        value = compute(inner, env)
        expected = compute(tree, {**env, "n": value})
        substituted = substitute(size, {"n": replacement})
    except ZeroDivisionError:
        return
    assert evaluate(substituted, env) == expected


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (n + 1, "n+1"),
        (1 - n, "1-n"),
        (2 * n, "2*n"),
        (n // 2, "n//2"),
        (n % 8, "n%8"),
        (minimum(n, m), "min(m,n)"),
        (2 * (n + 1) // 3, "(2*n+2)//3"),
        ((n * k) // k, "n"),
        ((n * k + m) // k, "m//k+n"),
        ((8 * n + m) // 8, "m//8+n"),
        ((n * k) % k, "0"),
        (n % 1, "0"),
        (n // 1, "n"),
        (n - n, "0"),
        ((n - 1) // 2, "(n+1)//2-1"),
        ((n * n - m * m) // (n + m), "n-m"),
        (minimum(n, n), "n"),
        (minimum(n, n + 1), "n"),
        (maximum(n, n + 1), "n+1"),
        (minimum(minimum(n, m), minimum(k, n)), "min(k,m,n)"),
        ((n // 2) // 3, "n//6"),
        ((n % 8) % 4, "n%4"),
        ((n % 8) // 8, "0"),
        ((n % 4) % 8, "n%4"),
        (n // -2, "(-n)//2"),
        (n * (m // 2), "n*(m//2)"),
        (-(n // 2), "-(n//2)"),
        (0 // n, "0"),
        (2 * n // (2 * m), "n//m"),
    ],
)
def test_normal_form(size: Size, text: str) -> None:
    assert show(size) == text
    assert parse(text) == size


def test_constants_are_plain_integers() -> None:
    for size in (n - n, (n + 3) - n, n * 0, (n + 4) % 1, maximum(n, n + 2) - n, parse("2*3")):
        assert type(size) is int


def test_a_size_has_no_truth_value_and_no_order() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(n)
    with pytest.raises(TypeError):
        _ = n < m  # type: ignore[operator]  # pyright: ignore
    assert n != 1
    assert n != "n"


def test_division_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        _ = n // 0
    with pytest.raises(ZeroDivisionError):
        _ = n % 0
    with pytest.raises(DimSyntaxError, match="division by zero"):
        parse("n//(m-m)")


def test_missing_names_are_named() -> None:
    with pytest.raises(MissingSize, match="no value is given for the size m"):
        evaluate(n + m, {"n": 1})


def test_growth_is_bounded() -> None:
    def power(base: Size, times: int) -> Size:
        product: Size = 1
        for _ in range(times):
            product = product * base
        return product

    def nest(size: Size, times: int) -> Size:
        for _ in range(times):
            size = (size + m) // (size + k)
        return size

    with pytest.raises(DimTooLarge):
        power(n, 65)
    with pytest.raises(DimTooLarge):
        power(n + m + k + name("p") + 1, 12)
    with pytest.raises(DimTooLarge):
        power(2**20 * n, 4)
    with pytest.raises(DimTooLarge):
        nest(n, 1000)
    with pytest.raises(DimSyntaxError):
        parse("(" * 5000 + "n" + ")" * 5000)
    with pytest.raises(DimSyntaxError):
        parse("9" * 5000)
    with pytest.raises(DimSyntaxError):
        parse("+".join(["n"] * 20_000))
    with pytest.raises(DimSyntaxError):
        parse("*".join(["n"] * 100))


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("", 0, "expected a name or a number"),
        ("n+", 2, "expected a name or a number"),
        ("n m", 2, "expected an operator"),
        ("n/2", 1, "use `//`"),
        ("n**2", 2, "expected a name or a number"),
        ("(n", 2, r"expected `\)`"),
        ("n$", 1, "has no meaning"),
        ("_+1", 0, "a size of its own"),
        ("min(n,", 6, "expected a name or a number"),
    ],
)
def test_syntax_errors_say_where(text: str, offset: int, message: str) -> None:
    with pytest.raises(DimSyntaxError, match=message) as caught:
        parse(text)
    assert caught.value.offset == offset


def test_copies_and_pickles() -> None:
    size = (n + 1) // 2 * minimum(n, m)
    assert isinstance(size, Dim)
    assert pickle.loads(pickle.dumps(size)) == size
    assert copy.deepcopy(size) == size
    assert len({size, copy.copy(size), parse(show(size))}) == 1
