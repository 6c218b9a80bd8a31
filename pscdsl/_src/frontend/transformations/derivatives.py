"""Derivatives: along directions, gradients, Jacobians; `checkpoint` and `stop_gradient`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, get_args

from pscdsl._src.frontend.interpreter.frames import require_program
from pscdsl._src.frontend.transformations.traced import (
    Options,
    Traced,
    Transformed,
    asked_for,
    asking,
    made_of,
    name_of,
    trace,
    transformed,
)
from pscdsl._src.frontend.trees import applicable, at, flatten, unflatten
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Args,
    Kwargs,
    StaticFunction,
    describe,
    is_traced,
    tree_parts,
)
from pscdsl._src.interpreters.replay import (
    Mask,
    batch,
    closed,
    has_tangent,
    jvp,
    repeated,
    transpose,
    zeros,
)
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Equation, Function, functions_in, walk
from pscdsl._src.primitives.control import Checkpoint, Policy
from pscdsl._src.primitives.custom_derivatives import BackwardOnly, StopGradient
from pscdsl._src.primitives.elementwise import Convert, equal
from pscdsl._src.primitives.shaping import Iota, Reshape, Slice, Transpose
from pscdsl._src.transforms.linearize import LinearizedProgram, jvp_of, linearize
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    DictType,
    NoneType,
    RecordType,
    StaticType,
    TupleType,
    Type,
    leaves,
    map_leaves,
    paths,
    size_of,
    type_parts,
)
from pscdsl.typing.codes.control import BadBody
from pscdsl.typing.codes.derivatives import NoForwardMode, NotAScalar, TangentMismatch
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32
from pscdsl.typing.python_containers import is_sequence
from pscdsl.typing.signatures import (
    Anonymous,
    ArraySpec,
    DictSpec,
    NoneSpec,
    RecordSpec,
    Signature,
    Spec,
    StaticSpec,
    TreeSpec,
    TupleSpec,
    spec_parts,
    with_spec_parts,
)
from pscdsl.typing.unify import array_difference, structure_differences

# `jvp`, `linearize`, `vjp` and `linear_transpose`: derivatives along directions.


# Trees of arrays that must have a given type: a tangent, the result of a rule.


Mismatch = Callable[[str, str, str, str], Diagnostic]
"""Makes a finding from the place in the tree, the type there, the wanted one, and the difference.
"""


def fitted(
    here: Builder, given: AnyValue, wanted: Type, what: str, mismatch: Mismatch
) -> list[Value]:
    """Return the leaves of a tree, weak ones in the wanted dtypes; a Failure if they do not fit."""
    found, tree = flatten(here, given, what)
    for each in structure_differences(tree, wanted):
        raise Failure(mismatch(each.path, str(each.found), str(each.wanted), each.why))
    values: list[Value] = []
    for leaf, (path, type_) in zip(found, paths(wanted), strict=True):
        value = at(leaf, type_.dtype)
        why = array_difference(here.facts, value.type, type_)
        if why is not None:
            raise Failure(mismatch(path, str(value.type), str(type_), why))
        values.append(value)
    return values


def at_place(what: str, path: str) -> str:
    """Return the subject of a message, with the place in it."""
    return f"{what} at `{path}`" if path else what


# Functions that forward mode cannot differentiate: they only have a rule for reverse mode.


def require_forward(equations: Sequence[Equation]) -> None:
    """Refuse equations, or functions that they call, whose tangents cannot be computed."""
    met: set[Function] = set()
    due = [Block((), tuple(equations), ())]
    while due:
        for equation in walk(due.pop()):
            primitive = equation.primitive
            if isinstance(primitive, BackwardOnly):
                raise Failure(NoForwardMode(function=primitive.function)).at(equation.span)
            for function in functions_in(primitive):
                if function not in met:
                    met.add(function)
                    due.append(function.body)


def tangent_tree(tree: Type) -> Type:
    """Return the type of tangents: `None` for a leaf without one."""
    if isinstance(tree, StaticType):
        return NONE
    return map_leaves(tree, lambda leaf: leaf if has_tangent(leaf) else NONE)  # type: ignore[arg-type,return-value]


def directions(here: Builder, name: str, what: str, given: AnyValue, tree: Type) -> list[Value]:
    """Return tangents or cotangents, checked against the tree that they belong to."""

    def mismatch(path: str, found: str, wanted: str, why: str) -> TangentMismatch:
        place = at_place(what, path)
        return TangentMismatch(transformation=name, what=place, given=found, wanted=wanted, why=why)

    return fitted(here, given, tangent_tree(tree), f"{what} given to `{name}`", mismatch)


def _moving(traced: Traced) -> list[bool]:
    """Return, for each operand of a traced function, whether it has a tangent."""
    return [
        *[False] * len(traced.captured),
        *[has_tangent(leaf.type) for leaf in traced.leaves],
    ]


def _arguments(traced: Traced, count: int) -> Type:
    """Return the types of the arguments; None for those that do not vary."""
    known = traced.varying
    return TupleType(tuple(known[at].tree if at in known else NONE for at in range(count)))


def _varying(function: Applicable, args: Args) -> list[int]:
    """Return the places of the arguments that are not static."""
    signature = getattr(function, "signature", None)
    parameters = signature.parameters if isinstance(signature, Signature) else ()
    static = {
        at for at, parameter in enumerate(parameters) if isinstance(parameter.spec, StaticSpec)
    }
    return [at for at in range(len(args)) if at not in static]


def _sequence(name: str, what: str, given: AnyValue) -> Sequence[AnyValue]:
    if not is_sequence(given):
        needs = f"{what} as a tuple, one item for each argument"
        raise Failure(BadBody(combinator=name, needs=needs, found=describe(given)))
    return given


def jvp_(
    here: Builder, fun: AnyValue, primals: AnyValue, tangents: AnyValue, has_aux: bool = False
) -> tuple[AnyValue, ...]:
    """Return the result of a function, and its derivative along a direction."""
    function = applicable(fun, "psc.jvp")
    args = _sequence("psc.jvp", "primals", primals)
    moves = tuple(_sequence("psc.jvp", "tangents", tangents))
    with _called(here, "psc.jvp", function):
        places = _varying(function, args)
        traced = trace(here, "psc.jvp", function, args, {}, places, has_aux=has_aux)
        wanted = _arguments(traced, len(args))
        given = iter(directions(here, "psc.jvp", "the tangents", moves, wanted))
        moving = [next(given) if has else None for has in _moving(traced)]
        first = len(here.program.current.equations)
        results: list[Value] = []
        with made_of(here, traced.source, traced.operands, results):
            primal, found = jvp(here, traced.block, traced.operands, moving)
            results += primal
        require_forward(here.program.current.equations[first:])
        count = sum(1 for _ in leaves(traced.result))
        out = [
            zeros(here, x.type) if t is None else t
            for x, t in zip(results[:count], found[:count], strict=True)
            if has_tangent(x.type)
        ]
        value = unflatten(traced.result, iter(results[:count]))
        tangent = unflatten(tangent_tree(traced.result), iter(out))
        if traced.aux is None:
            return value, tangent
        return value, tangent, unflatten(traced.aux, iter(results[count:]))


def _called(here: Builder, name: str, function: Applicable) -> AbstractContextManager[None]:
    """Return the context of a transformation that is called with its function's arguments."""
    called = f"{name}({name_of(function)})"
    here = require_program(here, f"`{called}`")
    here.program.transformed += 1
    return asking(here, called, "is called here")


@dataclass(frozen=True)
class LinearFunction(Applicable):
    """The result of `linearize` and `vjp`: the derivative at a point, in one of its directions."""

    name: str
    linear: LinearizedProgram
    inputs: Type
    outputs: Type
    backward: bool

    def wanted(self) -> Type:
        """Return the type of its operand."""
        return tangent_tree(self.outputs if self.backward else self.inputs)

    def function(self, base: Function, name: str) -> Function:
        """Return the map as a function of the saved values and of the operands."""
        linear = self.linear
        saved = TupleType(tuple([each.type for each in linear.saved]))
        given = self.wanted()
        result = tangent_tree(self.inputs if self.backward else self.outputs)
        count = len(linear.saved)

        def build(here: Builder, params: list[Value]) -> list[Value]:
            again = replace(linear, saved=tuple(params[:count]))
            run = again.backward if self.backward else again.forward
            try:
                return run(here, params[count:])
            except Failure as failure:
                raise asked_for(failure, self.name, base.span, "") from None

        if not self.backward:
            require_forward(linear.block.equations)
        body = closed(linear.facts, (*leaves(saved), *leaves(given)), build)
        parameters = (("saved", saved), ("directions", given))
        return Function(
            f"{name}.linear", base.dims, linear.facts, body, parameters, result, base.span
        )

    def holds(self) -> Sequence[AnyValue]:
        """Return the values that were saved at the point."""
        return self.linear.saved

    def apply(self, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        """Map tangents of the arguments to those of the result, or cotangents back."""
        here = here.program.current
        if self.backward:
            if len(args) != 1 or kwargs:
                needs = "one argument, the cotangent of the result"
                raise Failure(
                    BadBody(combinator=self.name, needs=needs, found=describe(tuple(args)))
                )
            given = directions(here, self.name, "the cotangent", args[0], self.outputs)
            with asking(here, self.name, "is run backwards here"), made_of(here, None, (), []):
                back = self.linear.backward(here, given)
            return unflatten(tangent_tree(self.inputs), iter(back))
        given = directions(here, self.name, "the tangents", tuple(args), self.inputs)
        require_forward(self.linear.block.equations)
        with made_of(here, None, (), []):
            forth = self.linear.forward(here, given)
        return unflatten(tangent_tree(self.outputs), iter(forth))


Linearized: TypeAlias = tuple[AnyValue, LinearFunction, *tuple[AnyValue, ...]]
"""The value, the derivative, and the auxiliary result if there is one."""


def _linearized(
    here: Builder, name: str, fun: AnyValue, primals: Sequence[AnyValue], has_aux: bool
) -> Linearized:
    function = applicable(fun, name)
    with _called(here, name, function):
        places = _varying(function, primals)
        traced = trace(here, name, function, primals, {}, places, has_aux=has_aux)
        count = sum(1 for _ in leaves(traced.result))
        active = tuple(_moving(traced))
        results: list[Value] = []
        backward = active if name == "psc.vjp" else ()
        with made_of(here, traced.source, traced.operands, results, backward, count):
            found, linear = linearize(here, traced.block, traced.operands, active, count)
            results += found
        value = unflatten(traced.result, iter(results[:count]))
        made = LinearFunction(
            f"{name}({name_of(function)})",
            linear,
            _arguments(traced, len(primals)),
            traced.result,
            name == "psc.vjp",
        )
        if traced.aux is None:
            return value, made
        return value, made, unflatten(traced.aux, iter(results[count:]))


def linearize_(
    here: Builder, fun: AnyValue, *primals: AnyValue, has_aux: bool = False
) -> Linearized:
    """Return the result, and the derivative there as a function of tangents."""
    return _linearized(here, "psc.linearize", fun, primals, has_aux)


def vjp(here: Builder, fun: AnyValue, *primals: AnyValue, has_aux: bool = False) -> Linearized:
    """Return the result, and a function from its cotangent to the arguments' cotangents."""
    return _linearized(here, "psc.vjp", fun, primals, has_aux)


def linear_transpose(here: Builder, fun: AnyValue, *primals: AnyValue) -> Transformed:
    """Return the transpose of a function linear in its arguments, of which only types count."""
    function = applicable(fun, "psc.linear_transpose")
    places = _varying(function, primals)
    traced = trace(here, "psc.linear_transpose", function, primals, {}, places)

    def run(inner: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        del kwargs
        name = "psc.linear_transpose"
        given = directions(inner, name, "the cotangent", args[0], traced.result)
        operands: list[Value | ArrayType] = [*traced.captured, *[x.type for x in traced.leaves]]
        found = transpose(inner, traced.block, operands, given)
        values = [
            zeros(inner, leaf.type) if x is None else x
            for x, leaf in zip(found[len(traced.captured) :], traced.leaves, strict=True)
        ]
        return unflatten(_arguments(traced, len(primals)), iter(values))

    return Transformed("linear_transpose", function, run)


# `grad`, Jacobians and `hessian`; `checkpoint` and `stop_gradient`.


# The declared results of transformations, derived from those of the kernel.


def gradient_signature(argnums: AnyValue, has_aux: bool, signature: Signature) -> Signature:
    """Return the signature of `grad`: gradients are like the arguments."""
    found, _, aux = _gradient(argnums, has_aux, signature)
    return replace(signature, result=None if found is None else _tuple(found, *aux))


def value_and_gradient_signature(
    argnums: AnyValue, has_aux: bool, signature: Signature
) -> Signature:
    """Return the signature of `value_and_grad`."""
    found, value, aux = _gradient(argnums, has_aux, signature)
    result = None if found is None or value is None else TupleSpec((_tuple(value, *aux), found))
    return replace(signature, result=result)


def _gradient(
    argnums: AnyValue, has_aux: bool, signature: Signature
) -> tuple[Spec | None, Spec | None, Sequence[Spec]]:
    """Return the specifications of the gradient, of the value, and of the auxiliary results."""
    value, aux = _parted(signature.result, has_aux)
    return None if value is None else _chosen(signature, argnums), value, aux


def jacobian_signature(argnums: AnyValue, has_aux: bool, signature: Signature) -> Signature:
    """Return the signature of `jacfwd` and `jacrev`: the argument's axes follow the result's."""
    value, aux = _parted(signature.result, has_aux)
    inner = _chosen(signature, argnums)
    if value is None or inner is None:
        return replace(signature, result=None)

    def of_result(result: ArraySpec) -> Spec | None:
        return changed(inner, lambda x: result.with_dims((*result.dims, *x.dims)))

    result = changed(value, of_result)
    return replace(signature, result=None if result is None else _tuple(result, *aux))


def _parted(result: Spec | None, has_aux: bool) -> tuple[Spec | None, Sequence[Spec]]:
    """Return the declared value, and the declared auxiliary result with `has_aux`."""
    if not has_aux:
        return result, ()
    if isinstance(result, TupleSpec) and len(result.items) == 2:
        return result.items[0], result.items[1:]
    return None, ()


def _tuple(first: Spec, *more: Spec) -> Spec:
    return TupleSpec((first, *more)) if more else first


def _chosen(signature: Signature, argnums: AnyValue) -> Spec | None:
    """Return the declared types of the arguments that `argnums` names."""
    specs = [p.spec for p in signature.parameters if not p.keyword_only]
    found: list[Spec] = []
    for place in argnums if is_sequence(argnums) else (argnums,):
        if not isinstance(place, int) or not -len(specs) <= place < len(specs):
            return None
        found.append(specs[place])
    return TupleSpec(tuple(found)) if is_sequence(argnums) else found[0]


def changed(spec: Spec, change: Callable[[ArraySpec], Spec | None]) -> Spec | None:
    """Return a specification with its array specifications changed; None where that fails."""
    if isinstance(spec, ArraySpec):
        if any(isinstance(dim, Anonymous) for dim in spec.dims):
            return None  # each `_` is a distinct size
        return change(spec)
    if isinstance(spec, StaticSpec | TreeSpec):
        return None
    items = _all(changed(part, change) for part in spec_parts(spec))
    if items is None:
        return None
    made = with_spec_parts(spec, items)
    if isinstance(made, RecordSpec):
        return RecordSpec(made.record, made.fields, spelled=True)
    return DictSpec(made.name, made.items, spelled=True) if isinstance(made, DictSpec) else made


def _all(specs: Iterable[Spec | None]) -> tuple[Spec, ...] | None:
    found = tuple(specs)
    known = tuple([each for each in found if each is not None])
    return known if len(known) == len(found) else None


def spec_of_type(tree: Type | None) -> Spec | None:
    """Return the specification that fits only this type; None if there is none."""
    items = None if tree is None else _all(map(spec_of_type, type_parts(tree)))
    if items is None:
        return None
    match tree:
        case ArrayType():
            return ArraySpec(tree.dtype, tree.shape)
        case NoneType():
            return NoneSpec()
        case TupleType():
            return TupleSpec(items, type(tree))
        case RecordType():
            names = [name for name, _ in tree.fields]
            return RecordSpec(tree.record, tuple(zip(names, items, strict=True)), spelled=True)
        case DictType():
            keys = [key for key, _ in tree.items]
            return DictSpec("", tuple(zip(keys, items, strict=True)), spelled=True)
        case _:
            return None


# `grad` and `value_and_grad`.


def grad(
    here: Builder | None, fun: AnyValue, argnums: AnyValue = 0, has_aux: bool = False
) -> Transformed:
    """Return the gradient of a function of one real result."""
    return transformed(_run, gradient_signature, "grad", fun, argnums, has_aux)


def value_and_grad(
    here: Builder | None, fun: AnyValue, argnums: AnyValue = 0, has_aux: bool = False
) -> Transformed:
    """Return the value and the gradient."""
    return transformed(_run, value_and_gradient_signature, "value_and_grad", fun, argnums, has_aux)


def _run(options: Options, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
    where, traced = options.trace(here, args, kwargs)
    leaves = list(paths(traced.result))
    if len(leaves) != 1 or leaves[0][1].shape or not leaves[0][1].dtype.is_float:
        function, found = name_of(options.function), str(traced.result)
        raise Failure(NotAScalar(transformation=options.called, function=function, found=found))
    active = (*[False] * len(traced.captured), *[True] * len(traced.leaves))
    # The auxiliary results are not differentiated: only the first result has a cotangent.
    results: list[Value] = []
    with made_of(here, traced.source, traced.operands, results, active, 1):
        values, linear = linearize(here, traced.block, traced.operands, active, 1)
        results += values
        one = here.literal(1.0, results[0].dtype)
        cotangents = iter(linear.backward(here, [one]))
    gradients = {at: each.unflatten(cotangents) for at, each in traced.varying.items()}
    gradient = options.selected(where, gradients)
    value = unflatten(traced.result, iter(results[:1]))
    if traced.aux is None:
        return gradient if options.name == "grad" else (value, gradient)
    aux = unflatten(traced.aux, iter(results[1:]))
    return (gradient, aux) if options.name == "grad" else ((value, aux), gradient)


# `jacfwd`, `jacrev` and `hessian`: all derivatives of all results.


def jacfwd(
    here: Builder | None, fun: AnyValue, argnums: AnyValue = 0, has_aux: bool = False
) -> Transformed:
    """Return all derivatives, column by column: for few inputs and many results."""
    return transformed(_run_jacobian, jacobian_signature, "jacfwd", fun, argnums, has_aux)


def jacrev(
    here: Builder | None, fun: AnyValue, argnums: AnyValue = 0, has_aux: bool = False
) -> Transformed:
    """Return all derivatives, row by row: for many inputs and few results."""
    return transformed(_run_jacobian, jacobian_signature, "jacrev", fun, argnums, has_aux)


def hessian(
    here: Builder | None, fun: AnyValue, argnums: AnyValue = 0, has_aux: bool = False
) -> Transformed:
    """Return all second derivatives: forward over reverse mode."""
    inner = transformed(_run_jacobian, jacobian_signature, "jacrev", fun, argnums, has_aux)
    made = transformed(_run_jacobian, jacobian_signature, "jacfwd", inner, argnums, has_aux)
    function = applicable(fun, "psc.hessian")
    return Transformed(
        "hessian", function, made.run, lambda own: made.signature(inner.signature(own))
    )


def _run_jacobian(options: Options, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
    where, traced = options.trace(here, args, kwargs)
    options.require_tangents("the result", traced.result)
    count = sum(1 for _ in leaves(traced.result))
    active = (*[False] * len(traced.captured), *[True] * len(traced.leaves))
    ahead = _by_inputs if options.name == "jacfwd" else _by_outputs
    results: list[Value] = []
    backward = () if options.name == "jacfwd" else active
    with made_of(here, traced.source, traced.operands, results, backward, count):
        found, rows = ahead(here, traced, active, count)
        results += found

    def of_inputs(output: int) -> AnyValue:
        derivatives: dict[int, AnyValue] = {}
        first = 0
        for place, each in traced.varying.items():
            size = len(each.leaves)
            derivatives[place] = unflatten(each.tree, iter(rows[output][first : first + size]))
            first += size
        return options.selected(where, derivatives)

    jacobian = unflatten(traced.result, map(of_inputs, range(count)))
    if traced.aux is None:
        return jacobian
    return jacobian, unflatten(traced.aux, iter(results[count:]))


def _by_inputs(
    here: Builder, traced: Traced, active: Mask, count: int
) -> tuple[list[Value], list[list[Value]]]:
    """Return the results, and their derivatives in each input: result axes, then input axes."""
    inputs = [leaf.type for leaf in traced.leaves]
    wanted = tuple(at < count for at in range(len(traced.block.results)))
    moving = jvp_of(here.facts, traced.block, active, wanted)
    require_forward(moving.equations)
    ones, places, size = _unit_rows(here, inputs)
    given = [*traced.operands, *ones]
    flags = [*[False] * len(traced.operands), *[True] * len(ones)]
    found, many = batch(here, moving, given, flags, size)
    first = len(wanted)
    columns = [
        x if is_batched else repeated(x, size)
        for x, is_batched in zip(found[first:], many[first:], strict=True)
    ]
    rows = [
        [_last(_rows_at(x, *place), type_) for place, type_ in zip(places, inputs, strict=True)]
        for x in columns
    ]
    return found[:first], rows


def _by_outputs(
    here: Builder, traced: Traced, active: Mask, count: int
) -> tuple[list[Value], list[list[Value]]]:
    """Return the results and the rows of the Jacobian, by reverse mode."""
    results, linear = linearize(here, traced.block, traced.operands, active, count)
    ones, places, size = _unit_rows(here, linear.outputs)
    found = linear.backward_rows(here, ones, size)
    rows = [
        [Reshape((*type_.shape, *x.shape[1:]))(_rows_at(x, *place)) for x in found]
        for place, type_ in zip(places, linear.outputs, strict=True)
    ]
    return results, rows


def _unit_rows(
    here: Builder, types: Sequence[ArrayType]
) -> tuple[list[Value], list[tuple[Size, Size]], Size]:
    """Return the trees of arrays with a single 1, as one batch.

    Also which rows have the 1 in each array, from and to, and how many there are.
    """
    total: Size = 0
    places: list[tuple[Size, Size]] = []
    for type_ in types:
        end = total + size_of(type_.shape)
        places.append((total, end))
        total = end
    values: list[Value] = []
    for type_, (first, end) in zip(types, places, strict=True):
        size = end - first
        row = here.bind(Iota((total, size), 0, I32), ())[0]
        column = here.bind(Iota((total, size), 1, I32), ())[0]
        ones = Convert(type_.dtype)(equal(row, column + here.size(first, I32)))
        values.append(Reshape((total, *type_.shape))(ones))
    return values, places, total


def _rows_at(x: Value, first: Size, end: Size) -> Value:
    """Return some rows of a batch."""
    rest = x.shape[1:]
    starts = (first, *[0 for _ in rest])
    return Slice(starts, (end, *rest), (1,) * x.ndim)(x)


def _last(x: Value, type_: ArrayType) -> Value:
    """Return a batch over the elements of an input, with these as its last axes."""
    moved = Transpose((*range(1, x.ndim), 0))(x)
    return Reshape((*x.shape[1:], *type_.shape))(moved)


# `checkpoint` and `stop_gradient`: the residuals of reverse mode, and constants.


def checkpoint(
    here: Builder | None, fun: AnyValue = None, policy: AnyValue = "nothing"
) -> AnyValue:
    """Return the function, computed again in reverse mode."""
    if fun is None:
        return StaticFunction("psc.checkpoint", partial(checkpoint, policy=policy))
    function = applicable(fun, "psc.checkpoint")
    policies: tuple[Policy, ...] = get_args(Policy)
    chosen: Policy | None = next((each for each in policies if each == policy), None)
    if chosen is None:
        needs = f"one of {', '.join(map(repr, policies))} as its policy"
        raise Failure(BadBody(combinator="psc.checkpoint", needs=needs, found=describe(policy)))
    return Transformed("checkpoint", function, partial(_run_checkpoint, function, chosen))


def _run_checkpoint(
    function: Applicable,
    policy: Policy,
    here: Builder,
    args: Args,
    kwargs: Kwargs,
) -> AnyValue:
    varying = [place for place, argument in enumerate(args) if _has_arrays(argument)]
    traced = trace(here, "psc.checkpoint", function, args, kwargs, varying)
    results = here.bind(Checkpoint(traced.block, policy), traced.operands)
    return unflatten(traced.result, iter(results))


def _has_arrays(value: AnyValue) -> bool:
    """Return whether an argument varies; numbers, functions and the like do not."""
    parts = tree_parts(value)
    return is_traced(value) if parts is None else any(map(_has_arrays, parts))


def stop_gradient(here: Builder, x: AnyValue) -> AnyValue:
    """Return the tree, as a constant in derivatives."""
    leaves, tree = flatten(here, x, "the argument of `psc.stop_gradient`")
    stopped = [
        StopGradient()(leaf) if isinstance(leaf, Value) and has_tangent(leaf.type) else leaf
        for leaf in leaves
    ]
    return unflatten(tree, iter(stopped))
