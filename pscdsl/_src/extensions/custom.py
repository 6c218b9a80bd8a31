"""Primitives of the user's own: a typed function as their meaning, a rule for their translation.

    @psc.primitive
    def cube(x: f32["*s"]) -> f32["*s"]:
        return x * x * x                      # the meaning, in NumPy

    @cube.translation
    def _(hlo, x):                            # the StableHLO that is emitted
        return hlo.binary("multiply", x, hlo.binary("multiply", x, x))

The checker takes the signature at its word, as nothing else can be known of a translation.

Rules for derivatives and batches are written in the language; what they are given, and what they
return, is what the rules of this package's own primitives do (`pscdsl.primitive`).  Operands are
the arrays of the arguments in their order, those of tuples and records included.

    @cube.jvp                                 # None is a zero tangent; at least one is given
    def _(outputs, primals, tangents):
        (x,), (dx,) = primals, tangents
        return 3 * x * x * dx                 # for each result; linear in the tangents

    @cube.batch                               # a batch is the first axis, of this size
    def _(operands, batched, size):
        return cube(*operands), batched       # the results, and which of them are batched

A primitive that derivatives apply to tangents also needs its transpose: from the cotangents of
the results to those of the operands in which it is linear.  These are not known; they have
`shape`, `dtype` and `ndim`.  What is returned for other operands does not count.

    @double.transpose
    def _(cotangents, operands):
        (ct,) = cotangents
        return double(ct)

Static arguments (`k: psc.Static[int]`) are given to every rule by their names.

A rule is registered in the module that defines its primitive, where the checker finds it.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, ParamSpec, Self, TypeVar

import numpy as np

from pscdsl._src.extensions.custom_rules import Rules, Statics, missing, registered
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.live import closure_of
from pscdsl._src.frontend.modules.traces import Trace
from pscdsl._src.frontend.trees.pytrees import unflatten
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.language.pickling import object_by_name
from pscdsl.typing.array_types import ArrayType, StaticType, leaves, size_of, substitute_tree
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.language import MissingAnnotation
from pscdsl.typing.codes.limits import NoRule
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, substitute
from pscdsl.typing.python_containers import is_sequence, is_tuple
from pscdsl.typing.signatures import StaticSpec

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Callable[..., Any])
Translation = Callable[..., Any]


class UserPrimitive(Generic[P, R]):
    """A function that is a single primitive of the typed program; see `primitive`."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self.rule: Translation | None = None
        self.rules: dict[str, types.FunctionType] = {}
        """The rules of other kinds, by kind."""
        self._definition: CustomDefinition | None = None
        functools.update_wrapper(self, function)

    def __reduce__(self) -> str:
        """By its name, as functions are pickled."""
        return object_by_name(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The meaning, in NumPy, outside of kernels."""
        return self.function(*args, **kwargs)

    def translation(self, rule: Translation) -> Translation:
        """Register `rule(hlo, *operands)`, which emits StableHLO and returns the results."""
        self.rule = rule
        return rule

    def jvp(self, rule: T) -> T:
        """Register `rule(outputs, primals, tangents)`, which returns the results' tangents."""
        return self._register("jvp", rule)

    def transpose(self, rule: T) -> T:
        """Register `rule(cotangents, operands)`, which returns the operands' cotangents."""
        return self._register("transpose", rule)

    def batch(self, rule: T) -> T:
        """Register `rule(operands, batched, size)`: the results, and which are batched."""
        return self._register("batch", rule)

    def _register(self, kind: str, rule: T) -> T:
        given: Any = rule
        if not isinstance(given, types.FunctionType):
            raise TypeError(f"`{kind}` takes a function written in Python")
        self.rules[kind] = given
        return rule

    def __pscdsl_definition__(self) -> CustomDefinition:
        if self._definition is None:
            function: Any = self.function
            self._definition = CustomDefinition(closure_of(function, Trace(function)), self)
        return self._definition


def primitive(function: Callable[P, R]) -> UserPrimitive[P, R]:
    """Make a primitive of a typed function, which is its NumPy meaning.

    The methods `translation`, `jvp`, `transpose` and `batch` register its rules, as decorators. The
    guide "Add a primitive" describes them.
    """
    return UserPrimitive(function)


def register_translation_rule(primitive: UserPrimitive[..., Any], rule: Translation) -> None:
    """Register `rule(hlo, *operands)`, which emits StableHLO and returns the results."""
    primitive.translation(rule)


class CustomDefinition:
    """A user's primitive as the front end sees it."""

    def __init__(self, closure: Closure, primitive: UserPrimitive[..., Any] | None = None) -> None:
        self.closure = closure
        self.name = closure.name
        self.primitive = primitive
        self.definition = Definition(closure)
        self.rules = Rules(closure.name, self._rule)

    def _rule(self, kind: str) -> Closure | None:
        """A rule as its source: what is registered, or what the module says it registers."""
        if self.primitive is None:
            return registered(self.closure, self, kind)
        rule = self.primitive.rules.get(kind)
        return None if rule is None else closure_of(rule, Trace(rule))

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """One equation, its types those of the signature."""
        signature = self.definition.signature
        if signature.result is None:
            span = self.closure.source.span(self.closure.node)
            raise Failure(MissingAnnotation(function=self.name, name="return", span=span))
        fit, operands = self.definition.matched(here, args, kwargs)
        declared = signature.result_type(fit.choice)
        tree = substitute_tree(declared, fit.sizes)
        static = {p.name for p in signature.parameters if isinstance(p.spec, StaticSpec)}
        statics = tuple(
            (name, _substituted(value, fit.sizes))
            for name, value in fit.choice.statics
            if name in static
        )
        custom = Custom(self.name, tuple(leaves(tree)), self, statics)
        return unflatten(tree, iter(here.bind(custom, operands)))


@dataclass(frozen=True)
class Custom(Primitive, name="custom"):
    """An equation of a user's primitive."""

    function: str = field(repr=False)
    results: tuple[ArrayType, ...] = field(repr=False)
    definition: CustomDefinition | None = field(repr=False)
    statics: Statics = ()

    @property
    def label(self) -> str:
        """The function's name."""
        return self.function

    @property
    def primitive(self) -> UserPrimitive[..., Any] | None:
        """What was registered for it, where that has been loaded."""
        return None if self.definition is None else self.definition.primitive

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return self.results

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        if self.primitive is None:
            raise Failure(NoRule(primitive=self.function, rule="evaluation: it was not loaded"))
        args, kwargs = self._arguments(operands, here.size)
        found: Any = self.primitive.function(*args, **kwargs)
        values = found if is_tuple(found) else (found,)
        pairs = zip(values, self.results, strict=True)
        return tuple(np.asarray(v, to_numpy(t.dtype)) for v, t in pairs)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        if self.primitive is None or self.primitive.rule is None:
            raise Failure(NoRule(primitive=self.function, rule="translation"))
        found = self.primitive.rule(hlo, *operands, **self._numbers(hlo.size))
        _require_types(self.function, hlo, found if is_sequence(found) else (found,), outputs)
        return tuple(found) if is_sequence(found) else (found,)

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        return self._rules("jvp").jvp(outputs, primals, tangents, self.statics)

    def transpose(
        self, cotangents: Sequence[Value | None], operands: Sequence[Value | ArrayType]
    ) -> Sequence[Value | None]:
        return self._rules("transpose").transpose(cotangents, operands, self.statics)

    def batch(
        self, operands: Sequence[Value], batched: Sequence[bool], size: Size
    ) -> tuple[Sequence[Value], Sequence[bool]]:
        return self._rules("batch").batch(operands, batched, size, self.results, self.statics)

    def substitute(self, env: Mapping[str, Size]) -> Self:
        if not self.statics:
            return super().substitute(env)
        statics = tuple((name, _substituted(value, env)) for name, value in self.statics)
        return replace(super().substitute(env), statics=statics)

    def _numbers(self, number: Callable[[Size], int]) -> dict[str, Any]:
        """The static arguments, sizes as numbers."""
        return {
            name: number(each.value) if isinstance(each.value, Dim) else each.value
            for name, each in self.statics
        }

    def _arguments(
        self, operands: Sequence[NDArray], number: Callable[[Size], int]
    ) -> tuple[list[Any], dict[str, Any]]:
        """What the meaning is called with: arrays and static values in their places."""
        assert self.definition is not None
        statics, arrays = self._numbers(number), iter(operands)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in self.definition.definition.signature.parameters:
            value = statics[parameter.name] if parameter.name in statics else next(arrays)
            if parameter.keyword_only:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        if next(arrays, None) is not None:
            raise Failure(NoRule(primitive=self.function, rule="evaluation: it takes a tree"))
        return args, kwargs

    def _rules(self, kind: str) -> Rules:
        if self.definition is None:
            raise Failure(missing(self.function, kind))
        return self.definition.rules

    def cost(self, inputs: Types, outputs: Types) -> Size:
        """One operation for each element of the results: what it really takes is not known."""
        total: Size = 0
        for type_ in outputs:
            total = total + size_of(type_.shape)
        return total


def _substituted(static: StaticType, env: Mapping[str, Size]) -> StaticType:
    def inside(value: object) -> object:
        if isinstance(value, Dim):
            return substitute(value, env)
        return tuple(map(inside, value)) if is_tuple(value) else value

    return StaticType(inside(static.value))


def _require_types(function: str, hlo: Hlo, found: Sequence[H], outputs: Types) -> None:
    """A translation must give what the signature says; a TypeError says what it gave."""
    given = [str(hlo.type_of(each)) for each in found]
    wanted = [str(hlo.tensor(type_)) for type_ in outputs]
    if given != wanted:
        raise TypeError(
            f"the translation of `{function}` gives {', '.join(given) or 'nothing'}, "
            f"but its signature says {', '.join(wanted)}"
        )


def make_primitive(here: Any, function: Any) -> Any:
    """`@psc.primitive`."""
    return CustomDefinition(function) if isinstance(function, Closure) else function
