"""Two products with one large matrix that are made in one pass over its rows.

So do the steps of methods that need `X.T @ f(X @ v)` for some pointwise f: the gradient of a
regression, and the product of a vector with its Hessian.  Without threads what takes longest is to
read the matrix, and one pass reads it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pscdsl.forms import form
from pscdsl.ir import Atom, Block, Equation, Literal, Var
from pscdsl.primitive import Hlo
from pscdsl.primitives.contractions import DotGeneral
from pscdsl.primitives.control.call import Call
from pscdsl.primitives.control.inlining import inlined
from pscdsl.primitives.control.rowwise import is_rowwise
from pscdsl.primitives.row_passes import RowPass, of_rows
from pscdsl.primitives.shaping import Broadcast, Transpose
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.dims import evaluate

ONE_PASS = form(
    "one_pass",
    "A large matrix times a vector, and the sum of its rows times weights that are computed from "
    "that product row by row, are made in one pass over blocks of rows, in processes with one "
    "processor: 0.5 to 0.8 of the time.",
)
LEAST_BYTES: Final = 9 << 18
"""Smaller matrices stay in the second cache between two products."""
FEWEST_COLUMNS: Final = 64
NEAR_BYTES: Final = 32 << 10
"""What a row, the vectors that it is multiplied with and the sum may have together: they are to
stay in the first cache."""
BYTES_OF_EFFORT: Final = 8
"""So many bytes a row has for each operation that its weight takes, as these are done one after
another for few rows; ..."""
TRANSCENDENTAL: Final = 8
"""... functions that cost so much count twice."""
MOST_EQUATIONS: Final = 100
"""Of which the weights are computed: they are emitted twice."""


@dataclass(frozen=True)
class _Product:
    """A vector times a matrix, with one axis of the matrix summed over."""

    at: int
    """Its place in the block."""
    vector: Atom
    matrix: Var
    axis: int
    output: Var


@dataclass(frozen=True)
class _Pass:
    """A sum of weighted rows, and what its weights depend on."""

    rows: _Product
    products: tuple[_Product, ...]
    """Those of the same matrix that its weights are computed of."""
    weights: Block
    """How they are: of these products, and of what else it takes."""
    others: tuple[Atom, ...]
    """What that is."""
    moving: frozenset[Atom]
    """All that depends on the products."""


def with_one_pass(hlo: Hlo, block: Block) -> Block:
    """The block with each such pair of products as one equation; itself if there is none."""
    if not hlo.uses(ONE_PASS):
        return block
    given = block
    if any(isinstance(each.primitive, Call) and _has_large(hlo, each) for each in block.equations):
        given = inlined(block)
    found = _found(hlo, given)
    if found is None:
        return block
    while found is not None:
        given = _replaced(given, found)
        found = _found(hlo, given)
    return given


def _has_large(hlo: Hlo, each: Equation) -> bool:
    return any(_is_large(hlo, atom.type) for atom in each.inputs)


def _is_large(hlo: Hlo, type: ArrayType) -> bool:  # noqa: A002
    """Whether it is a matrix that is worth it."""
    if type.rank != 2 or not type.dtype.is_float or type.dtype.bits < 32:
        return False
    rows, columns = hlo.shape(type.shape)
    row = columns * type.dtype.bits // 8
    return columns >= FEWEST_COLUMNS and 3 * row <= NEAR_BYTES and rows * row >= LEAST_BYTES


def _found(hlo: Hlo, block: Block) -> _Pass | None:
    """The first sum of weighted rows that can be made together with products."""
    candidates = [
        (at, each)
        for at, each in enumerate(block.equations)
        if isinstance(each.primitive, DotGeneral) and _has_large(hlo, each)
    ]
    if len(candidates) < 2:
        return None
    made = {output: each for each in block.equations for output in each.outputs}
    products = [x for at, each in candidates if (x := _product(at, each, made))]
    passes = (_pass(block, x, products, made) for x in products if x.axis == 0)
    return next((x for x in passes if x and _pays(hlo, x)), None)


def _pays(hlo: Hlo, found: _Pass) -> bool:
    """Whether all fits in the cache, and the weights are computed in less time than is won."""
    matrix = found.rows.matrix.type
    row = hlo.size(matrix.shape[1]) * matrix.dtype.bits // 8
    near = (len(found.products) + 2) * row
    return near <= NEAR_BYTES and row >= BYTES_OF_EFFORT * _effort(found.weights)


def _product(at: int, each: Equation, made: Mapping[Var, Equation]) -> _Product | None:
    dot = each.primitive
    ranks = [x.type.rank for x in each.inputs]
    if not isinstance(dot, DotGeneral) or dot.batched[0] or dot.result is not None:
        return None
    if sorted(ranks) != [1, 2] or len(dot.contract[0]) != 1:
        return None
    place = ranks.index(2)
    (axis,), matrix = dot.contract[place], each.inputs[place]
    turned = made.get(matrix) if isinstance(matrix, Var) else None
    if turned is not None and isinstance(turned.primitive, Transpose):
        axis, matrix = turned.primitive.permutation[axis], turned.inputs[0]
    if not isinstance(matrix, Var):
        return None
    return _Product(at, each.inputs[1 - place], matrix, axis, each.outputs[0])


def _pass(
    block: Block, rows: _Product, products: Sequence[_Product], made: Mapping[Var, Equation]
) -> _Pass | None:
    """A sum of rows with the products that its weights are computed of, if it is row by row."""
    theirs = {x.output: x for x in products if x.matrix is rows.matrix and x.axis == 1}
    used: dict[_Product, None] = {}
    on_the_way: dict[Equation, None] = {}
    due, seen = [rows.vector], set[Atom]()
    while due:
        atom = due.pop()
        each = made.get(atom) if isinstance(atom, Var) else None
        if atom in seen or each is None:
            continue
        seen.add(atom)
        if atom in theirs:
            used[theirs[atom]] = None
        elif atom.type.rank == 1 and is_rowwise(each):
            on_the_way[each] = None
            due += each.inputs
    moving = _moving(block, [x.output for x in used])
    chain = tuple([x for x in block.equations if x in on_the_way and _moves(x.inputs, moving)])
    first = tuple(sorted(used, key=lambda x: x.at))
    inside = {*(x.output for x in first), *(output for x in chain for output in x.outputs)}
    outside = {x for each in chain for x in each.inputs} - inside
    if (
        not used
        or rows.vector not in inside
        or len(chain) > MOST_EQUATIONS
        or _moves((*outside, *(x.vector for x in first), rows.matrix), moving)
    ):
        return None
    weights, others = _weights([x.output for x in first], chain, rows.vector, made)
    return _Pass(rows, first, weights, others, moving)


def _moving(block: Block, first: Iterable[Atom]) -> frozenset[Atom]:
    """What depends on some atoms, these too."""
    found = set(first)
    for each in block.equations:
        if not found.isdisjoint(each.inputs):
            found.update(each.outputs)
    return frozenset(found)


def _moves(atoms: Iterable[Atom], moving: frozenset[Atom]) -> bool:
    return not moving.isdisjoint(atoms)


def _replaced(block: Block, found: _Pass) -> Block:
    """The block with one equation for the products, in the place of the last.

    Whatever depends on the first products moves behind it, and goes if only they needed it.
    """
    rows, moving = found.rows, found.moving
    own = {rows.at, *(x.at for x in found.products)}
    before = [x for at, x in enumerate(block.equations[: rows.at]) if at not in own]
    early = [x for x in before if not _moves(x.inputs, moving)]
    late = [x for x in before if _moves(x.inputs, moving)]
    late, needed = _needed([*late, *block.equations[rows.at + 1 :]], block.results)
    kept = tuple([i for i, x in enumerate(found.products) if x.output in needed])
    inputs = (rows.matrix, *(x.vector for x in found.products), *found.others)
    outputs = (rows.output, *(found.products[i].output for i in kept))
    what = RowPass(found.weights, len(found.products), kept)
    both = Equation(what, inputs, outputs, block.equations[rows.at].span)
    return Block(block.params, (*early, both, *late), block.results)


def _needed(
    equations: Sequence[Equation], results: Sequence[Atom]
) -> tuple[list[Equation], set[Atom]]:
    """The equations that are needed for the results, and all that these need."""
    needed, kept = set(results), list[Equation]()
    for each in reversed(equations):
        if not needed.isdisjoint(each.outputs):
            needed.update(each.inputs)
            kept.append(each)
    return kept[::-1], needed


def _weights(
    products: Sequence[Var],
    chain: Sequence[Equation],
    result: Atom,
    made: Mapping[Var, Equation],
) -> tuple[Block, tuple[Atom, ...]]:
    """The weights as a block, and what it takes besides the products.

    Of what is the same in all rows it takes the scalar.
    """
    names: dict[Atom, Atom] = {x: x for x in products}
    names.update((output, output) for each in chain for output in each.outputs)
    given: dict[Atom, Var] = {}
    equations: list[Equation] = []
    for each in chain:
        for atom in each.inputs:
            if atom not in names:
                one = _everywhere(atom, made)
                names[atom] = (
                    one if isinstance(one, Literal) else given.setdefault(one, Var(one.type))
                )
        inputs = tuple([names[atom] for atom in each.inputs])
        equations.append(Equation(each.primitive, inputs, each.outputs, each.span))
    return Block((*products, *given.values()), tuple(equations), (result,)), tuple(given)


def _everywhere(atom: Atom, made: Mapping[Var, Equation]) -> Atom:
    """The scalar that a vector repeats, or the atom itself."""
    each = made.get(atom) if isinstance(atom, Var) else None
    if each is None or not isinstance(each.primitive, Broadcast):
        return atom
    return atom if each.inputs[0].type.rank else each.inputs[0]


def _effort(weights: Block) -> int:
    """About how many operations the weight of a row takes."""
    total = 0
    for each in of_rows(weights, 1).equations:
        inputs, outputs = (tuple([x.type for x in xs]) for xs in (each.inputs, each.outputs))
        cost = evaluate(each.primitive.cost(inputs, outputs), {})
        total += 2 * cost if cost >= TRANSCENDENTAL else cost
    return total
