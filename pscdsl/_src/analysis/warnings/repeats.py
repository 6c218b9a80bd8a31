"""Stores that combine an array's elements with others where an index may occur twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from pscdsl._src.analysis.warnings.programs import LiveProgram, Wording
from pscdsl._src.ir.program import Atom, Equation, Literal
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.indexing import Gather, Scatter
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Concatenate,
    Constant,
    Iota,
    Reshape,
    Reverse,
    SizeValue,
    Slice,
)
from pscdsl._src.primitives.sorting import Sort
from pscdsl.typing.codes.numerics import RepeatedIndexCombined
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Size

_SUMS = (e.add, e.subtract)
_OTHERS = (e.multiply, e.maximum, e.minimum)
"""Combined with one number they are hardly meant once for each time that an index occurs."""


def check_repeats(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """`a[i] += x` where `i` may hold an index twice: the last one counts, as in NumPy."""
    for at in program.made(Scatter):
        scatter = at.primitive
        assert isinstance(scatter, Scatter)
        if scatter.combine != "set" or scatter.unique or scatter.batched:
            continue
        function = _combining_function(program, at)
        if function and not _are_distinct(program, at.inputs[1]):
            texts = _written_parts(wording, at)
            if texts is not None:
                yield RepeatedIndexCombined(function=function, texts=texts).at(at.span)


def _combining_function(program: LiveProgram, at: Equation) -> str:
    """Return the function that combines replaced elements with others; empty for anything else."""
    array, indices, updates = at.inputs
    made = program.definition(program.bare(updates))
    if made is None or made.primitive not in (*_SUMS, *_OTHERS):
        return ""
    for place, operand in enumerate(made.inputs):
        read = program.definition(program.bare(operand))
        other = program.bare(made.inputs[1 - place])
        if read is None or not isinstance(read.primitive, Gather):
            continue
        if made.primitive is e.subtract and place:
            continue  # `a[i] = x - a[i]`
        if made.primitive in _OTHERS and other.type.rank == 0:
            continue
        if program.alike(read.inputs[0], array) and program.alike(read.inputs[1], indices):
            return str(made.primitive.name)
    return ""


def _are_distinct(program: LiveProgram, indices: Atom) -> bool:
    """Return whether no two index tuples are known to be possibly equal."""
    *shape, count = indices.type.shape
    if all(size == 1 for size in shape):
        return True
    at = program.definition(indices)
    joined = at is not None and isinstance(at.primitive, Concatenate)
    columns = at.inputs if joined and at is not None else (indices,)
    found = [_column(program, each) for each in columns]
    fixed = [_known_column(program, each) for each in columns]
    if len(columns) == count and all(each is not None for each in fixed):
        sizes = [each.size for each in fixed if each is not None]
        if max(sizes) == prod(size for size in shape if isinstance(size, int)):
            tuples = np.stack([np.resize(each, max(sizes)) for each in fixed if each is not None])
            return len(np.unique(tuples, axis=1).T) == max(sizes)
    if len([size for size in shape if size != 1]) == 1:
        return any(found)
    return all(found)


def _known_column(program: LiveProgram, atom: Atom) -> np.ndarray | None:
    """Return the numbers of a column that is known while checking."""
    at = program.definition(_plain(program, atom))
    return at.primitive.array().ravel() if at and isinstance(at.primitive, Constant) else None


def _column(program: LiveProgram, atom: Atom) -> bool:
    """Return whether no index occurs twice in a column, along its own axis."""
    atom = _plain(program, atom)
    at = program.definition(atom)
    if at is None:
        return False
    if at.primitive is e.remainder:
        return _wraps_once(program, at)
    match at.primitive:
        case Iota():
            return True
        case Constant():
            array = at.primitive.array()
            return array.size == np.unique(array).size
        case Sort():
            return _column(program, at.inputs[at.outputs.index(atom)])
        case Slice() | Reverse():
            return _column(program, at.inputs[0])
        case _:
            return _is_shifted(program, at.primitive, at.inputs)


def _wraps_once(program: LiveProgram, at: Equation) -> bool:
    """Return whether these are consecutive numbers, no more than the modulus.

    So `(np.arange(n) + 1) % n` are neighbours on a ring.
    """
    modulus = program.bare(at.inputs[1])
    made = program.definition(modulus)
    size: Size | None = None
    if isinstance(modulus, Literal) and isinstance(modulus.value, int):
        size = modulus.value
    elif made is not None and isinstance(made.primitive, SizeValue):
        size = made.primitive.size
    count = prod(each for each in at.outputs[0].type.shape if isinstance(each, int))
    named = [each for each in at.outputs[0].type.shape if not isinstance(each, int)]
    few = isinstance(size, int) and not named and count <= abs(size)
    return (few or (count == 1 and named == [size])) and _counts(program, at.inputs[0])


def _counts(program: LiveProgram, atom: Atom) -> bool:
    """Return whether these are consecutive numbers: `np.arange`, shifted."""
    at = program.definition(_plain(program, atom))
    if at is None or isinstance(at.primitive, Iota):
        return at is not None
    if at.primitive not in _SUMS:
        return False
    left, right = at.inputs
    pairs = [(left, right)] if at.primitive is e.subtract else [(left, right), (right, left)]
    return any(program.bare(n).type.rank == 0 and _counts(program, c) for c, n in pairs)


def _is_shifted(program: LiveProgram, primitive: object, inputs: Sequence[Atom]) -> bool:
    """Return whether this is a column without repetition, shifted or scaled by one number."""
    if primitive not in (*_SUMS, e.multiply):
        return False
    for number, column in (inputs, inputs[::-1]):
        bare = program.bare(number)
        scales = isinstance(bare, Literal) and bare.value != 0
        if bare.type.rank == 0 and (scales or primitive is not e.multiply):
            return _column(program, column)
    return False


def _plain(program: LiveProgram, atom: Atom) -> Atom:
    """Return the index before changes of axes or integer type, and of negative counts."""
    while (at := program.definition(atom)) is not None:
        primitive = at.primitive
        if isinstance(primitive, e.Select):
            shifted = program.definition(at.inputs[1])
            if shifted is None or shifted.primitive is not e.add:
                return atom
            if shifted.inputs[0] is not at.inputs[2]:
                return atom
            atom = at.inputs[2]
            continue
        widens = isinstance(primitive, e.Convert) and primitive.dtype.is_integer
        if not (widens or isinstance(primitive, Reshape | Broadcast)):
            return program.source(atom)
        atom = at.inputs[0]
    return program.source(atom)


def _written_parts(wording: Wording, at: Equation) -> tuple[str, str, str] | None:
    """Return the texts of an array, its index and the operand; None if it is no store here."""
    try:
        tree: ast.AST = ast.parse(wording.text(at.span)).body[0]
    except (SyntaxError, ValueError, RecursionError, IndexError):
        return None
    match tree:
        case ast.AugAssign(target=ast.Subscript() as target, value=value):
            other = ast.unparse(value)
        case ast.Expr(value=ast.Subscript() as target):
            other = "…"
        case _:
            return None
    return ast.unparse(target.value), ast.unparse(target.slice), other
