"""`jvp`, `linearize`, `vjp` and `linear_transpose`: derivatives along directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pscdsl._src.frontend.transformations.traced import (
    Traced,
    Transformed,
    asked_for,
    made_of,
    name_of,
    trace,
)
from pscdsl._src.frontend.trees.pytrees import applicable, at, flatten, unflatten
from pscdsl._src.frontend.values.values import Applicable, describe
from pscdsl._src.interpreters.jvp import has_tangent, jvp
from pscdsl._src.interpreters.replay import closed, zeros
from pscdsl._src.interpreters.transpose import transpose
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Equation, Function, functions_in, walk
from pscdsl._src.primitives.control.custom_derivatives import BackwardOnly
from pscdsl._src.transforms.linearize import Linear, linearize
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    StaticType,
    TupleType,
    Type,
    leaves,
    map_leaves,
    paths,
)
from pscdsl.typing.codes.control import BadBody
from pscdsl.typing.codes.derivatives import NoForwardMode, TangentMismatch
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.python_containers import is_sequence
from pscdsl.typing.signatures import Signature, StaticSpec
from pscdsl.typing.tree_differences import array_difference, structure_differences

# Trees of arrays that have to have the type of something else: a tangent, what a rule gives.


Mismatch = Callable[[str, str, str, str], Diagnostic]
"""A finding, from the place in the tree, what stands there, what is wanted, and what differs."""


def fitted(here: Builder, given: Any, wanted: Type, what: str, mismatch: Mismatch) -> list[Value]:
    """The leaves of a tree, weak ones in the dtypes wanted; a Failure if they do not fit."""
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
    """What a message speaks of, and where in it."""
    return f"{what} at `{path}`" if path else what


# What forward mode cannot pass: functions that only say how to go backwards.


def require_forward(equations: Sequence[Equation]) -> None:
    """Refuse equations, or functions that they call, with tangents that nobody can compute."""
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
    """The type of tangents: `None` stands for what has none."""
    if isinstance(tree, StaticType):
        return NONE
    return map_leaves(tree, lambda leaf: leaf if has_tangent(leaf) else NONE)  # type: ignore[arg-type,return-value]


def directions(here: Builder, name: str, what: str, given: Any, tree: Type) -> list[Value]:
    """Tangents or cotangents, checked against the tree that they belong to."""

    def mismatch(path: str, found: str, wanted: str, why: str) -> TangentMismatch:
        place = at_place(what, path)
        return TangentMismatch(transformation=name, what=place, given=found, wanted=wanted, why=why)

    return fitted(here, given, tangent_tree(tree), f"{what} given to `{name}`", mismatch)


def _moving(traced: Traced) -> list[bool]:
    """The operands of a traced function that have tangents."""
    return [
        *[False] * len(traced.captured),
        *[has_tangent(leaf.type) for leaf in traced.leaves],
    ]


def _arguments(traced: Traced, count: int) -> Type:
    """The types of the arguments; of those that do not vary, None."""
    known = traced.varying
    return TupleType(tuple(known[at].tree if at in known else NONE for at in range(count)))


def _varying(function: Applicable, args: Sequence[Any]) -> list[int]:
    """The places of the arguments that are not static."""
    signature = getattr(function, "signature", None)
    parameters = signature.parameters if isinstance(signature, Signature) else ()
    static = {
        at for at, parameter in enumerate(parameters) if isinstance(parameter.spec, StaticSpec)
    }
    return [at for at in range(len(args)) if at not in static]


def _sequence(name: str, what: str, given: Any) -> Sequence[Any]:
    if not is_sequence(given):
        needs = f"{what} as a tuple, one item for each argument"
        raise Failure(BadBody(combinator=name, needs=needs, found=describe(given)))
    return given


def jvp_(
    here: Builder, fun: Any, primals: Any, tangents: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """The result of a function, and how it changes along a direction."""
    function = applicable(fun, "psc.jvp")
    args = _sequence("psc.jvp", "primals", primals)

    def run(inner: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        places = _varying(function, args)
        traced = trace(inner, "psc.jvp", function, args, {}, places, has_aux=has_aux)
        moves, wanted = tuple(kwargs["tangents"]), _arguments(traced, len(args))
        given = iter(directions(inner, "psc.jvp", "the tangents", moves, wanted))
        moving = [next(given) if has else None for has in _moving(traced)]
        first = len(inner.program.current.equations)
        results: list[Value] = []
        with made_of(inner, traced.source, traced.operands, results):
            primal, found = jvp(inner, traced.block, traced.operands, moving)
            results += primal
        require_forward(inner.program.current.equations[first:])
        count = sum(1 for _ in leaves(traced.result))
        out = [
            zeros(inner, x.type) if t is None else t
            for x, t in zip(results[:count], found[:count], strict=True)
            if has_tangent(x.type)
        ]
        value = unflatten(traced.result, iter(results[:count]))
        tangent = unflatten(tangent_tree(traced.result), iter(out))
        if traced.aux is None:
            return value, tangent
        return value, tangent, unflatten(traced.aux, iter(results[count:]))

    given = _sequence("psc.jvp", "tangents", tangents)
    result: tuple[Any, ...] = Transformed("jvp", function, run).apply(
        here, args, {"tangents": given}
    )
    return result


@dataclass(frozen=True)
class LinearFunction:
    """What `linearize` and `vjp` return: the derivative at a point, in one of its directions."""

    name: str
    linear: Linear
    inputs: Type
    outputs: Type
    backward: bool

    def wanted(self) -> Type:
        """The type of what it is applied to."""
        return tangent_tree(self.outputs if self.backward else self.inputs)

    def function(self, base: Function, name: str) -> Function:
        """The part as a function of its own, of the saved values and of the operands."""
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

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Map tangents of the arguments to those of the result, or cotangents back."""
        here = here.program.current
        if self.backward:
            if len(args) != 1 or kwargs:
                needs = "one argument, the cotangent of the result"
                raise Failure(
                    BadBody(combinator=self.name, needs=needs, found=describe(tuple(args)))
                )
            given = directions(here, self.name, "the cotangent", args[0], self.outputs)
            place = here.program.span
            try:
                with made_of(here, None, (), []):
                    back = self.linear.backward(here, given)
            except Failure as failure:
                raise asked_for(failure, self.name, place, "is run backwards here") from None
            finally:
                here.program.span = place
            return unflatten(tangent_tree(self.inputs), iter(back))
        given = directions(here, self.name, "the tangents", tuple(args), self.inputs)
        require_forward(self.linear.block.equations)
        with made_of(here, None, (), []):
            forth = self.linear.forward(here, given)
        return unflatten(tangent_tree(self.outputs), iter(forth))


def _linearized(here: Builder, name: str, fun: Any, primals: Sequence[Any], has_aux: bool) -> Any:
    function = applicable(fun, f"psc.{name}")

    def run(inner: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        del kwargs
        called = f"psc.{name}"
        places = _varying(function, args)
        traced = trace(inner, called, function, args, {}, places, has_aux=has_aux)
        count = sum(1 for _ in leaves(traced.result))
        active = tuple(_moving(traced))
        results: list[Value] = []
        with made_of(inner, traced.source, traced.operands, results):
            found, linear = linearize(inner, traced.block, traced.operands, active, count)
            results += found
        value = unflatten(traced.result, iter(results[:count]))
        made = LinearFunction(
            f"{called}({name_of(function)})",
            linear,
            _arguments(traced, len(args)),
            traced.result,
            name == "vjp",
        )
        if traced.aux is None:
            return value, made
        return value, made, unflatten(traced.aux, iter(results[count:]))

    return Transformed(name, function, run).apply(here, primals, {})


def linearize_(here: Builder, fun: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The result, and the derivative there as a function of tangents."""
    return _linearized(here, "linearize", fun, primals, has_aux)


def vjp(here: Builder, fun: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The result, and a function from its cotangent to the cotangents of the arguments."""
    return _linearized(here, "vjp", fun, primals, has_aux)


def linear_transpose(here: Builder, fun: Any, *primals: Any) -> Transformed:
    """The transpose of a function that is linear in its arguments; of these only types count."""
    function = applicable(fun, "psc.linear_transpose")
    places = _varying(function, primals)
    traced = trace(here, "psc.linear_transpose", function, primals, {}, places)

    def run(inner: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
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
