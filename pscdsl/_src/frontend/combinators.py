"""Control flow by functions: `cond`, `scan`, `while_loop` and the like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pscdsl._src.frontend.interpreter.frames import inner_block
from pscdsl._src.frontend.interpreter.functions import Closure, items_of
from pscdsl._src.frontend.transformations.traced import to_front
from pscdsl._src.frontend.trees import (
    MAX_ROUNDS,
    Attempt,
    applicable,
    at,
    bool_scalar,
    flatten_plainly,
    of_values,
    pair_in,
    strong,
    unflatten,
)
from pscdsl._src.frontend.values import AnyValue, Applicable, Array, Poisoned, describe
from pscdsl._src.ir.builder import Builder, Site, Value, Weak
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.control import Switch
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import Reverse, Transpose
from pscdsl._src.primitives.while_loop import While
from pscdsl.numpy.calling import normalize_axis
from pscdsl.typing.array_types import (
    ArrayType,
    NoneType,
    Shape,
    TupleType,
    Type,
    children,
    map_leaves,
    paths,
    same_structure,
    show_shape,
)
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.control import (
    COMBINING,
    BadBody,
    BranchMismatch,
    CarryMismatch,
    LoopLengthsDiffer,
)
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.codes.shapes_of_arguments import EmptyReduction
from pscdsl.typing.diagnostics import Failure, Label, Span
from pscdsl.typing.dims import Dim, Size, maximum
from pscdsl.typing.dtypes import I32, DType, accepts_weak
from pscdsl.typing.python_containers import is_integer_scalar, is_tuple
from pscdsl.typing.unify import Difference, array_difference, repair, structure_differences

# `cond` and `switch`.


def cond(
    here: Builder, pred: AnyValue, true_fun: AnyValue, false_fun: AnyValue, *operands: AnyValue
) -> AnyValue:
    """Return `true_fun(*operands)` if `pred` else `false_fun(*operands)`; run only one."""
    branches = [applicable(each, "psc.cond") for each in (false_fun, true_fun)]
    if isinstance(pred, bool):
        return branches[pred].apply(here, operands, {})
    predicate = bool_scalar(here, pred, "psc.cond")
    names = ("the false branch", "the true branch")
    return _branches(here, "psc.cond", predicate, branches, operands, names)


def switch(here: Builder, index: AnyValue, branches: AnyValue, *operands: AnyValue) -> AnyValue:
    """Return `branches[index](*operands)`, with the index clamped to the number of branches."""
    functions = [applicable(each, "psc.switch") for each in items_of(branches)]
    if not functions:
        raise Failure(BadBody(combinator="psc.switch", needs="at least one branch", found="none"))
    if isinstance(index, int):
        return functions[min(max(index, 0), len(functions) - 1)].apply(here, operands, {})
    if isinstance(index, Weak | Dim):
        index = here.size(index, I32) if isinstance(index, Dim) else index.default()
    if not isinstance(index, Value) or index.ndim or not index.dtype.is_integer:
        raise Failure(
            BadBody(
                combinator="psc.switch", needs="an integer scalar as index", found=describe(index)
            )
        )
    names = tuple(f"branch {number}" for number in range(len(functions)))
    number = _as_i32(index, len(functions))
    return _branches(here, "psc.switch", number, functions, operands, names)


def _as_i32(index: Value, count: int) -> Value:
    if index.dtype is I32:
        return index
    low, high = index.dtype.range
    here = index.builder
    top = here.literal(min(count - 1, high), index.dtype)
    bottom = here.literal(max(0, low), index.dtype)
    return e.Convert(I32)(e.Clamp()(bottom, index, top))


def _branches(
    here: Builder,
    construct: str,
    index: Value,
    functions: Sequence[Applicable],
    operands: Sequence[AnyValue],
    names: Sequence[str],
) -> AnyValue:
    program = here.program
    span = program.span
    wanted: list[DType] | None = None
    open_: list[list[Array]] = []
    traced: list[tuple[Builder, list[Array], Type]] = []
    for _ in range(MAX_ROUNDS):
        attempt = Attempt(program)
        traced = []
        for function in functions:
            with inner_block(here) as inner:
                result = function.apply(inner, operands, {})
                found, tree = flatten_plainly(inner, result, f"a branch of `{construct}`")
                leaves: list[Array] = found
                if wanted is not None:
                    leaves = [at(v, d) for v, d in zip(found, wanted, strict=True)]
                traced.append((inner, leaves, tree))
        try:
            joined = join_branches(here, span, construct, traced, names)
        except Failure as failure:
            labels = (_place(here, f, n) for f, n in zip(functions, names, strict=True))
            raise failure.labelled(*(label for label in labels if label is not None)) from None
        if wanted is not None or all(
            isinstance(v, Value) for _, leaves, _ in traced for v in leaves
        ):
            break
        wanted, open_ = joined, [leaves for _, leaves, _ in traced]
        attempt.forget()
    results = bind_branches(here, index, traced)
    if wanted is not None:
        for position, (path, _) in enumerate(paths(traced[0][2])):
            if all(isinstance(leaves[position], Weak) for leaves in open_):
                program.mark_also(results[position], program.site(construct + path, span))
    return unflatten(traced[0][2], iter(results))


def _place(here: Builder, function: Applicable, name: str) -> Label | None:
    """Return a label at a branch; None if it has no source."""
    if not isinstance(function, Closure):
        return None
    span = function.source.span(function.node)
    if span.line != span.end_line:  # a `def`: its first line is enough
        span = span.head(len("def"))
    return Label(span.within(here.program.span.call_site), name)


def join_branches(
    here: Builder,
    span: Span,
    construct: str,
    traced: Sequence[tuple[Builder, list[Array], Type]],
    names: Sequence[str],
) -> list[DType]:
    """Return the dtype of each result leaf; a Failure where branches differ."""
    program, facts = here.program, here.facts
    tree = traced[0][2]
    for number, (_, _, other) in enumerate(traced[1:], 1):
        differences = structure_differences(other, tree)
        found = [
            BranchMismatch(
                construct=construct,
                path=difference.path,
                first=str(difference.wanted),
                other=str(difference.found),
                names=(names[0], names[number]),
                why=difference.why,
                rewrite=_same_structure(difference),
            )
            for difference in differences
        ]
        if found:
            raise Failure(*found)
    dtypes: list[DType] = []
    problems: list[BranchMismatch] = []
    for position, (path, _) in enumerate(paths(tree)):
        column = [leaves[position] for _, leaves, _ in traced]
        program.agree(column)
        decided = next((v.dtype for v in column if isinstance(v, Value)), None)
        if decided is None:
            top = max(column, key=lambda v: v.dtype.kind)
            assert isinstance(top, Weak)
            decided = chosen(top, program.site(construct + path, span), top.dtype)
        dtypes.append(decided)
        types = [v.type.with_dtype(decided) if _is_taken(v, decided) else v.type for v in column]
        for number, other_type in enumerate(types[1:], 1):
            why = array_difference(facts, other_type, types[0])
            if why is not None:
                rewrite = repair(
                    facts, other_type, types[0], f"let {names[number]} return its result"
                )
                problems.append(
                    BranchMismatch(
                        construct=construct,
                        path=path,
                        first=str(types[0]),
                        other=str(other_type),
                        names=(names[0], names[number]),
                        why=why,
                        rewrite=rewrite,
                    )
                )
                break
    if problems:
        raise Failure(*problems)
    return dtypes


def _is_taken(array: Array, dtype: DType) -> bool:
    """Return whether the result of a branch is weak and takes the dtype of the others.

    In JAX its own dtype must be the same.
    """
    if not isinstance(array, Weak):
        return False
    jax = array.builder.program.jax
    if jax is not None:
        return jax.canonical(array.dtype) is dtype
    return accepts_weak(dtype, array.kind)


def _same_structure(place: Difference) -> str:
    """Return advice for branches whose structures differ."""
    if isinstance(place.found, NoneType) or isinstance(place.wanted, NoneType):
        return "where a branch has nothing to return, let it return zeros of the other's types"
    return "let all branches return the same tuples and records"


def bind_branches(
    here: Builder, index: Value, traced: Sequence[tuple[Builder, list[Array], Type]]
) -> tuple[Value, ...]:
    """Make every branch take the same captured values, then append the equation."""
    finished: list[tuple[Builder, list[Value]]] = []
    for inner, leaves, _ in traced:
        values = [v for v in leaves if isinstance(v, Value)]
        assert len(values) == len(leaves)
        for value in values:
            inner.atom(value)
        finished.append((inner, values))
    captured = list(dict.fromkeys(var for inner, _ in finished for var in inner.captured))
    blocks: list[Block] = []
    for inner, values in finished:
        for var in captured:
            inner.atom(Value(here, var))
        inner.captured = {var: inner.captured[var] for var in captured}
        block, _ = inner.finish([], values)
        blocks.append(block)
    return here.bind(Switch(tuple(blocks)), (index, *(Value(here, var) for var in captured)))


# `scan`, `map`, `fori_loop` and `while_loop`.


def chosen(weak: Weak, site: Site, otherwise: DType) -> DType:
    """Return the dtype of an array or number at a site, if its later uses decide it."""
    program = weak.builder.program
    decided = program.decided and site in program.decided
    return program.choose(site, weak.kind) if decided else otherwise


# The carry of a loop: its initial value, the body's result, and their agreement.


@dataclass
class CombinatorCarry:
    """A loop's carry: its initial leaves, some of them weak until the body decides."""

    loop: str
    leaves: list[Array]
    tree: Type
    dtypes: list[DType]
    body: Applicable | None = None
    """The function whose result is the next carry."""
    sites: list[frozenset[Site]] = field(default_factory=list[frozenset[Site]])
    """The sites that chose the dtypes."""

    def __post_init__(self) -> None:
        """Choose the dtypes of weak leaves."""
        for index, leaf in enumerate(self.leaves):
            program = leaf.builder.program
            if isinstance(leaf, Value):
                self.sites.append(program.sites(leaf))
            else:
                site = program.site(f"{self.loop} {index}")
                self.sites.append(frozenset([site]))
                self.dtypes[index] = chosen(leaf, site, self.dtypes[index])

    @classmethod
    def of(cls, here: Builder, loop: str, init: AnyValue, body: Applicable) -> CombinatorCarry:
        """Return the carry with this initial value."""
        leaves, tree = flatten_plainly(here, init, f"the initial carry of `{loop}`")
        return cls(loop, leaves, tree, [leaf.dtype for leaf in leaves], body)

    def parameters(self, inner: Builder) -> list[Value]:
        """Return the parameters of a body for the carry."""
        pairs = zip(self.initial_types(), self.sites, strict=True)
        return [inner.program.mark(inner.parameter(t), sites) for t, sites in pairs]

    def final(self, results: Sequence[Value]) -> AnyValue:
        """Return the carry after a loop."""
        for each, sites in zip(results, self.sites, strict=True):
            program = each.builder.program
            program.mark(each, program.sites(each) | sites)
        return unflatten(self.tree, iter(results))

    def initial_types(self) -> list[ArrayType]:
        """Return the types of the initial leaves in the dtypes found so far."""
        return [leaf.type.with_dtype(d) for leaf, d in zip(self.leaves, self.dtypes, strict=True)]

    def initial(self) -> list[Value]:
        """Return the initial leaves in the dtypes found so far."""
        return [at(leaf, dtype) for leaf, dtype in zip(self.leaves, self.dtypes, strict=True)]

    def settle(
        self, facts: Assumptions, returned: Sequence[Array], tree: Type
    ) -> list[Value] | None:
        """Return the body's results as the next carry; None if a weak leaf changes dtype first."""
        initial = self.initial_types()
        remaining = iter(initial)
        own = map_leaves(self.tree, lambda _: next(remaining))
        differences = list(structure_differences(tree, own))
        if differences:
            raise Failure(
                *(self.other_structure(own, tree, difference) for difference in differences)
            )
        changed = False
        values: list[Value] = []
        problems: list[CarryMismatch] = []
        places = [path for path, _ in paths(own)]
        for index, (path, start, each) in enumerate(zip(places, initial, returned, strict=True)):
            value, leaf = at(each, start.dtype), self.leaves[index]
            if value.dtype is not start.dtype:
                program = value.builder.program
                begun = program.mark(value.builder.parameter(start), self.sites[index])
                program.agree([begun, value])
                if isinstance(leaf, Weak) and accepts_weak(value.dtype, leaf.kind):
                    self.dtypes[index] = value.dtype
                    changed = True
                    continue
            values.append(value)
            found = self.mismatch(facts, path, start, value.type)
            if found is not None:
                problems.append(found)
        if changed:
            return None
        if problems:
            raise Failure(*problems)
        return values

    def other_structure(self, given: Type, returned: Type, place: Difference) -> CarryMismatch:
        """Return the mismatch for a part whose structure differs."""
        rewrite = "return what the carry starts as, or start with what is returned"
        pair = isinstance(returned, TupleType) and len(returned.items) == 2
        if self.loop in COMBINING:
            rewrite = "return one tree of the structure of each of the two that are combined"
        elif pair and self.loop != "psc.scan" and same_structure(children(returned)[0][1], given):
            rewrite = "return the carry alone: only the body of `psc.scan` has a second result"
        return CarryMismatch(
            loop=self.loop,
            path=place.path,
            given=str(place.wanted),
            returned=str(place.found),
            why=place.why,
            rewrite=rewrite,
        )

    def mismatch(
        self, facts: Assumptions, path: str, given: ArrayType, returned: ArrayType
    ) -> CarryMismatch | None:
        """Return the mismatch for a leaf whose type differs; None if it agrees."""
        why = array_difference(facts, returned, given)
        if why is None:
            return None
        rewrite = repair(facts, returned, given, "return it")
        what = "combine rows" if self.loop in COMBINING else "start with a carry"
        if given.shape == returned.shape:
            rewrite = f"{what} of dtype {returned.dtype}, or {rewrite}"
        elif given.rank != returned.rank:
            start = f"{what} of shape [{show_shape(returned.shape)}]"
            rewrite = f"{rewrite}, or {start}" if rewrite else start
        return CarryMismatch(
            loop=self.loop,
            path=path,
            given=str(given),
            returned=str(returned),
            why=why,
            rewrite=rewrite,
        )


def returned_by(here: Builder, body: Applicable | None) -> tuple[Label, ...]:
    """Return a label at the result of a loop's body."""
    place = body.returned if isinstance(body, Closure) else None
    if place is None:
        return ()
    return (Label(place.within(here.program.span.call_site), "the body returns this"),)


Extra: TypeAlias = tuple[ArrayType, frozenset[Site]]
"""The type of a further parameter of a body, and where its dtype was chosen."""
Run: TypeAlias = Callable[[Builder, AnyValue, Sequence[Array]], tuple[AnyValue, list["Array"]]]
"""`run(inner, carry, extra)` gives the next carry and further results."""


@dataclass(frozen=True)
class TracedBody:
    """A loop body: its block takes captured values, the carry, then the extra parameters."""

    block: Block
    captured: tuple[Value, ...]
    carry: list[Value]


def trace_carry(
    here: Builder, carry: CombinatorCarry, extra: Sequence[Extra], run: Run, pairs: bool = False
) -> TracedBody:
    """Elaborate a loop body until the dtypes of the weak leaves of its carry are settled.

    Most bodies accept the default dtypes. For the others, the body is elaborated once with a weak
    carry, to find the dtypes that it needs. With `pairs` the last of its extra parameters is a
    second carry.
    """
    program = here.program
    discovered = not any(isinstance(leaf, Weak) for leaf in carry.leaves)
    for _ in range(MAX_ROUNDS):
        attempt = Attempt(program)
        traced: TracedBody | None = None
        try:
            traced = _trace(here, carry, extra, run, pairs)
        except Poisoned:
            if discovered:
                raise
        except Failure as failure:
            if discovered:
                raise failure.labelled(*returned_by(here, carry.body)) from None
        if traced is not None and (discovered or not attempt.failed()):
            return traced
        attempt.forget()
        if not discovered:
            discovered = True
            _discover(here, carry, extra, run, pairs)
    raise Failure(
        CarryMismatch(
            loop=carry.loop,
            path="",
            given="of one dtype",
            returned="another one each time",
            why="the dtypes do not settle",
        )
    )


def _trace(
    here: Builder, carry: CombinatorCarry, extra: Sequence[Extra], run: Run, pairs: bool
) -> TracedBody | None:
    with inner_block(here) as inner:
        params = carry.parameters(inner)
        more = _parameters(inner, extra) + (carry.parameters(inner) if pairs else [])
        next_carry, results = run(inner, unflatten(carry.tree, iter(params)), more)
        leaves, tree = flatten_plainly(inner, next_carry, f"the carry that `{carry.loop}` returns")
        settled = carry.settle(here.facts, leaves, tree)
        if settled is None:
            return None
        block, captured = inner.finish([*params, *more], [*settled, *strong(results)])
        return TracedBody(block, captured, settled)


def _parameters(inner: Builder, extra: Sequence[Extra]) -> list[Value]:
    return [inner.program.mark(inner.parameter(type_), sites) for type_, sites in extra]


def _discover(
    here: Builder, carry: CombinatorCarry, extra: Sequence[Extra], run: Run, pairs: bool
) -> None:
    """Note the dtypes that the body gives to the weak leaves of its carry, or wants them in."""
    program = here.program
    attempt = Attempt(program)
    wanted: dict[int, DType] = {}
    with inner_block(here) as inner:
        params = [_open(inner, leaf, wanted, at) for at, leaf in enumerate(carry.leaves)]
        more: list[Array] = [*_parameters(inner, extra)]
        if pairs:
            more += [_open(inner, leaf, wanted, at) for at, leaf in enumerate(carry.leaves)]
        try:
            next_carry, _ = run(inner, unflatten(carry.tree, iter(params)), more)
            leaves, _ = flatten_plainly(inner, next_carry, "")
        except (Failure, Poisoned):
            leaves = []
    attempt.forget()
    if len(leaves) != len(carry.leaves):
        return  # the next round reports the problem
    for index, (start, found) in enumerate(zip(carry.leaves, leaves, strict=True)):
        dtype = wanted.get(index, found.dtype) if isinstance(found, Weak) else found.dtype
        if isinstance(start, Weak) and accepts_weak(dtype, start.kind):
            carry.dtypes[index] = dtype


def _open(inner: Builder, leaf: Array, wanted: dict[int, DType], index: int) -> Array:
    """Return a parameter for a leaf of the carry, weak if the leaf is.

    What dtype a weak one is taken in, if not in its default, is noted.
    """
    if isinstance(leaf, Value):
        return inner.parameter(leaf.type)
    default, shape = leaf.dtype, leaf.shape

    def at(dtype: DType) -> Value:
        if dtype is not default:
            wanted[index] = dtype
        return inner.parameter(ArrayType(dtype, shape))

    return Weak(inner, leaf.kind, shape, at, whole=I32)


def trace_counter(
    here: Builder,
    step: Callable[[Builder, Array, AnyValue], AnyValue],
    carry: CombinatorCarry,
    counter: DType,
    sites: frozenset[Site] = frozenset(),
) -> TracedBody:
    """Trace `step(inner, i, carry)`; the counter is the last of the block's carry."""

    def run(inner: Builder, state: AnyValue, more: Sequence[Array]) -> tuple[AnyValue, list[Array]]:
        (i,) = more
        return step(inner, i, state), [i + 1]

    return trace_carry(here, carry, [(ArrayType(counter), sites)], run)


def scan(
    here: Builder,
    f: AnyValue,
    init: AnyValue,
    xs: AnyValue,
    length: AnyValue,
    reverse: bool,
    unroll: int,
) -> AnyValue:
    """Iterate `carry, y = f(carry, x)` over the leading axis of `xs`; return carry and ys."""
    del unroll  # a hint that costs more than it gives on this backend
    function = applicable(f, "psc.scan")
    carry = CombinatorCarry.of(here, "psc.scan", init, function)

    def step(inner: Builder, state: AnyValue, x: AnyValue) -> AnyValue:
        return function.apply(inner, (state, x), {})

    return _scan(here, step, carry, xs, length, bool(reverse))


def _scan(
    here: Builder,
    step: Callable[[Builder, AnyValue, AnyValue], AnyValue],
    carry: CombinatorCarry,
    xs: AnyValue,
    length: AnyValue = None,
    reverse: bool = False,
) -> tuple[AnyValue, AnyValue]:
    name = carry.loop
    leaves, xs_tree = flatten_plainly(here, xs, f"the `xs` of `{name}`")
    columns = strong(leaves)
    steps = scan_length(here.facts, name, columns, length)
    rows = [(ArrayType(x.dtype, x.shape[1:]), here.program.sites(x)) for x in columns]
    ys_tree: list[Type] = []

    def run(inner: Builder, state: AnyValue, row: Sequence[Array]) -> tuple[AnyValue, list[Array]]:
        result = step(inner, state, unflatten(xs_tree, iter(row)))
        needs = "a body that returns a pair (carry, y)"
        after, y = pair_in(result, lambda given: BadBody(combinator=name, needs=needs, found=given))
        outputs, tree = flatten_plainly(inner, y, f"what the body of `{name}` returns")
        settled = strong(outputs)
        ys_tree[:] = [of_values(tree, settled)]
        return after, [*settled]

    body = trace_carry(here, carry, rows, run)
    count = len(body.carry)
    primitive = Scan(body.block, len(body.captured), count, steps, reverse)
    results = here.bind(primitive, (*body.captured, *carry.initial(), *columns))
    return carry.final(results[:count]), unflatten(ys_tree[0], iter(results[count:]))


def scan_length(facts: Assumptions, name: str, columns: Sequence[Value], length: AnyValue) -> Size:
    """Return the common length of the leading axes."""
    if is_integer_scalar(length):
        length = int(length)
    if length is not None and not isinstance(length, int | Dim):
        raise Failure(NotStatic(what=f"the length of `{name}`"))
    for column in columns:
        if not column.ndim:
            raise Failure(
                LoopLengthsDiffer(
                    combinator=name,
                    lengths=("none (a scalar)",),
                    why=f"{column.type} has no leading axis",
                )
            )
    sizes: list[Size] = [column.shape[0] for column in columns]
    if length is not None:
        sizes.append(length)
    if not sizes:
        raise Failure(LoopLengthsDiffer(combinator=name, lengths=(), why=""))
    for size in sizes[1:]:
        if not facts.equal(sizes[0], size):
            raise Failure(
                LoopLengthsDiffer(
                    combinator=name,
                    lengths=tuple(map(str, dict.fromkeys(sizes))),
                    why=disagreement(facts, sizes[0], size),
                )
            )
    return sizes[0]


def map_(here: Builder, f: AnyValue, xs: AnyValue, *more: AnyValue) -> AnyValue:
    """Return `f(x)` for each x along the leading axis, results stacked."""
    function = applicable(f, "psc.map")
    carry = CombinatorCarry.of(here, "psc.map", (), function)

    def step(inner: Builder, state: AnyValue, x: AnyValue) -> AnyValue:
        return state, function.apply(inner, x if more and is_tuple(x) else (x,), {})

    return _scan(here, step, carry, (xs, *more) if more else xs)[1]


def fori_loop(
    here: Builder, lower: AnyValue, upper: AnyValue, body_fun: AnyValue, init_val: AnyValue
) -> AnyValue:
    """Iterate `val = body_fun(i, val)` for i from `lower` up to `upper` (excluded); `i` is i32."""
    function = applicable(body_fun, "psc.fori_loop")
    carry = CombinatorCarry.of(here, "psc.fori_loop", init_val, function)

    def step(inner: Builder, i: Array, state: AnyValue) -> AnyValue:
        return function.apply(inner, (i, state), {})

    if isinstance(lower, int | Dim) and isinstance(upper, int | Dim):
        return _counted(here, step, carry, lower, upper)
    low, high = (_index(here, each) for each in (lower, upper))
    sites = here.program.sites(low) | here.program.sites(high)
    dtype = low.dtype if not isinstance(lower, int) else high.dtype
    low, high = (e.Convert(dtype)(x) if x.dtype is not dtype else x for x in (low, high))
    body = trace_counter(here, step, carry, dtype, sites)
    return _counted_while(here, carry, body, Limits(low, high), None)


def _index(here: Builder, value: AnyValue) -> Value:
    if isinstance(value, int | Dim):
        return here.size(value, I32)
    if isinstance(value, Weak):
        value = value.default()
    if isinstance(value, Value) and not value.ndim and value.dtype.is_integer:
        return value
    raise Failure(
        BadBody(
            combinator="psc.fori_loop", needs="integer scalars as bounds", found=describe(value)
        )
    )


def _counted(
    here: Builder,
    step: Callable[[Builder, Array, AnyValue], AnyValue],
    carry: CombinatorCarry,
    lower: Size,
    upper: Size,
) -> AnyValue:
    """Loop with known bounds: a scan without rows, its counter the last of its carry."""
    length = upper - lower
    if not here.facts.proves(Fact("<=", 0, length)):
        length = maximum(length, 0)
    body = trace_counter(here, step, carry, I32)
    count = len(body.carry)
    primitive = Scan(body.block, len(body.captured), count + 1, length, False)
    start = here.size(lower, I32)
    results = here.bind(primitive, (*body.captured, *carry.initial(), start))
    return carry.final(results[:count])


def while_loop(
    here: Builder,
    cond_fun: AnyValue,
    body_fun: AnyValue,
    init_val: AnyValue,
    max_steps: AnyValue,
    checkpoint_every: AnyValue,
) -> AnyValue:
    """Iterate `val = body_fun(val)` while `cond_fun(val)`, at most `max_steps` times if given."""
    every = checkpoint_every
    if every is not None:
        if isinstance(every, bool) or not isinstance(every, int | Dim):
            raise Failure(NotStatic(what="`checkpoint_every`"))
        if not here.facts.proves(Fact("<=", 1, every)):
            needs = "a positive number of steps as `checkpoint_every`"
            raise Failure(BadBody(combinator="psc.while_loop", needs=needs, found=str(every)))
    condition = applicable(cond_fun, "psc.while_loop")
    body = applicable(body_fun, "psc.while_loop")
    carry = CombinatorCarry.of(here, "psc.while_loop", init_val, body)

    def step(inner: Builder, i: Array | None, state: AnyValue) -> AnyValue:
        return body.apply(inner, (state,), {})

    if max_steps is None:
        traced = trace_carry(
            here, carry, (), lambda inner, state, _: (step(inner, None, state), [])
        )
        return _while(here, carry, traced, condition)
    limit = _index(here, max_steps)
    stepping = trace_counter(here, step, carry, limit.dtype)
    bound = max_steps if isinstance(max_steps, int | Dim) else None
    if isinstance(bound, int):
        bound = max(bound, 0)
    elif bound is not None and not here.facts.proves(Fact("<=", 0, bound)):
        bound = maximum(bound, 0)
    limits = Limits(here.literal(0, limit.dtype), limit, bound, every)
    return _counted_while(here, carry, stepping, limits, condition)


def _while(
    here: Builder, carry: CombinatorCarry, body: TracedBody, condition: Applicable
) -> AnyValue:
    with inner_block(here) as inner:
        params = carry.parameters(inner)
        found = condition.apply(inner, (unflatten(carry.tree, iter(params)),), {})
        test, captured = inner.finish(params, [bool_scalar(inner, found, carry.loop)])
    primitive = While(test, body.block, len(captured), len(body.captured))
    results = here.bind(primitive, (*captured, *body.captured, *carry.initial()))
    return carry.final(results)


@dataclass(frozen=True)
class Limits:
    """The start and limit of a counter, its number of steps if known, and checkpoints."""

    start: Value
    limit: Value
    bound: Size | None = None
    every: Size | None = None


def _counted_while(
    here: Builder,
    carry: CombinatorCarry,
    body: TracedBody,
    limits: Limits,
    condition: Applicable | None,
) -> AnyValue:
    """Loop while the counter, the last of the carry, is below a limit and the condition holds."""
    start = limits.start
    with inner_block(here) as inner:
        params = carry.parameters(inner)
        counter = inner.parameter(start.type, "step")
        predicate = counter < limits.limit
        if condition is not None:
            found = condition.apply(inner, (unflatten(carry.tree, iter(params)),), {})
            predicate = bool_scalar(inner, found, carry.loop) & predicate
        test, captured = inner.finish([*params, counter], [predicate])
    counts = len(captured), len(body.captured)
    primitive = While(test, body.block, *counts, limits.bound, limits.every)
    results = here.bind(primitive, (*captured, *body.captured, *carry.initial(), start))
    return carry.final(results[: len(body.carry)])


# `associative_scan` and `map_reduce`: rows combined by an associative function.


def associative_scan(
    here: Builder, fn: AnyValue, elems: AnyValue, reverse: bool, axis: AnyValue
) -> AnyValue:
    """Return `y[i] = fn(y[i-1], x[i])` along an axis, with rows combined in any grouping."""
    name = "psc.associative_scan"
    function = applicable(fn, name)
    leaves, tree = flatten_plainly(here, elems, f"the `elems` of `{name}`")
    axes = [_axis(axis, leaf, name) for leaf in leaves]
    rows = [
        _stand_in(leaf, (*leaf.shape[:place], *leaf.shape[place + 1 :]))
        for leaf, place in zip(leaves, axes, strict=True)
    ]
    carry = CombinatorCarry(name, rows, tree, [row.dtype for row in rows], function)
    body = trace_combination(here, carry, function)
    arrays = [
        to_front(at(leaf, dtype), place)
        for leaf, dtype, place in zip(leaves, carry.dtypes, axes, strict=True)
    ]
    length = scan_length(here.facts, name, arrays, None)
    if reverse:
        arrays = [Reverse((0,))(x) for x in arrays]
    primitive = AssociativeScan(body.block, len(body.captured), length)
    found = here.bind(primitive, (*body.captured, *arrays))
    carry.final(found)
    if reverse:
        found = tuple([Reverse((0,))(x) for x in found])
    results = [_from_front(x, place) for x, place in zip(found, axes, strict=True)]
    return unflatten(tree, iter(results))


def _axis(axis: AnyValue, leaf: Array, name: str) -> int:
    """Return the axis of one array, counted from the front."""
    if not leaf.ndim:
        why = f"{leaf.type} has no axis"
        raise Failure(LoopLengthsDiffer(combinator=name, lengths=("none (a scalar)",), why=why))
    return normalize_axis(axis, leaf.ndim, name)


def _stand_in(array: Array, shape: Shape) -> Array:
    """Return a placeholder with this shape and the dtype of an array; weak if the array is."""
    here = array.builder
    if isinstance(array, Value):
        return here.parameter(ArrayType(array.dtype, shape))

    def at(dtype: DType) -> Value:
        return here.parameter(ArrayType(dtype, shape))

    return Weak(here, array.kind, shape, at, whole=I32)


def _from_front(x: Value, axis: int) -> Value:
    """Return an array with its first axis moved to this place."""
    if not axis:
        return x
    order = list(range(1, x.ndim))
    order.insert(axis, 0)
    return Transpose(tuple(order))(x)


def trace_combination(here: Builder, carry: CombinatorCarry, function: Applicable) -> TracedBody:
    """Trace a function of two rows, with the types of the carry, that returns another one."""

    def run(inner: Builder, state: AnyValue, more: Sequence[Array]) -> tuple[AnyValue, list[Array]]:
        other = unflatten(carry.tree, iter(more))
        return function.apply(inner, (state, other), {}), []

    return trace_carry(here, carry, (), run, pairs=True)


def map_reduce(
    here: Builder, map_fn: AnyValue, combine: AnyValue, xs: AnyValue, init: AnyValue
) -> AnyValue:
    """Combine `map_fn` of the rows of `xs` with each other, after `init` if that is given."""
    name = "psc.map_reduce"
    function, combination = applicable(map_fn, name), applicable(combine, name)
    leaves, tree = flatten_plainly(here, xs, f"the `xs` of `{name}`")
    columns = strong(leaves)
    length = scan_length(here.facts, name, columns, None)
    if init is None and not here.facts.proves(Fact("<=", 1, length)):
        given, remedy = columns[0].type, "pass `init`, which is what there is of no rows"
        raise Failure(EmptyReduction(function=name, given=given, size=length, remedy=remedy))
    start = None if init is None else CombinatorCarry.of(here, name, init, function)
    mapping = _Mapping(here, function, columns, tree, start)
    attempt = Attempt(here.program)
    mapped = mapping.trace(None)
    again = any(isinstance(leaf, Weak) for leaf in mapped.leaves)
    if again:
        attempt.forget()
    rows = [_stand_in(leaf, leaf.shape) for leaf in mapped.leaves]
    dtypes = [row.dtype for row in rows] if start is None else list(start.dtypes)
    carry = CombinatorCarry(name, rows, mapped.tree, dtypes, combination)
    body = trace_combination(here, carry, combination)
    if again:
        mapped = mapping.trace(carry.dtypes)
    initial: list[Value] = []
    if start is not None:
        initial = [at(x, dtype) for x, dtype in zip(start.leaves, carry.dtypes, strict=True)]
    counts = len(mapped.captured), len(body.captured), len(initial)
    primitive = MapReduce(mapped.block, body.block, *counts, length)
    operands = (*mapped.captured, *body.captured, *initial, *columns)
    return carry.final(here.bind(primitive, operands))


@dataclass(frozen=True)
class _Mapped:
    """The results of a function of a row, as a block of captured values and the row."""

    block: Block
    captured: tuple[Value, ...]
    leaves: list[Array]
    """The results; weak ones where their dtypes are still open."""
    tree: Type


@dataclass(frozen=True)
class _Mapping:
    """A function of rows, and the values that its results must agree with."""

    here: Builder
    function: Applicable
    columns: Sequence[Value]
    tree: Type
    start: CombinatorCarry | None

    def trace(self, dtypes: Sequence[DType] | None) -> _Mapped:
        """Elaborate it; weak results in these dtypes, if they are known."""
        here, start = self.here, self.start
        with inner_block(here) as inner:
            params = [inner.parameter_for(x, ArrayType(x.dtype, x.shape[1:])) for x in self.columns]
            result = self.function.apply(inner, (unflatten(self.tree, iter(params)),), {})
            leaves, tree = flatten_plainly(
                inner, result, "what `map_fn` of `psc.map_reduce` returns"
            )
            found = strong(leaves)
            if dtypes is not None:
                found = [at(x, dtype) for x, dtype in zip(leaves, dtypes, strict=True)]
            elif start is not None:
                found, leaves = self._agreeing(start, leaves, tree)
            block, captured = inner.finish(params, found)
        return _Mapped(block, captured, leaves, of_values(tree, found))

    def _agreeing(
        self, start: CombinatorCarry, leaves: Sequence[Array], tree: Type
    ) -> tuple[list[Value], list[Array]]:
        """Convert results to the types of the initial leaves; leaves weak in both stay weak."""
        facts = self.here.facts
        try:
            found = start.settle(facts, leaves, tree) or start.settle(facts, leaves, tree)
        except Failure as failure:
            raise failure.labelled(*returned_by(self.here, self.function)) from None
        assert found is not None
        open_ = [
            x if isinstance(x, Weak) and isinstance(first, Weak) else value
            for x, first, value in zip(leaves, start.leaves, found, strict=True)
        ]
        return found, open_
