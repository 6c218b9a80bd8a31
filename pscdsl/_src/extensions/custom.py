"""Primitives of users: a typed function as their meaning, and rules that users register."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NoReturn, ParamSpec, Self, TypeAlias, TypeVar

import numpy as np

from pscdsl._src.analysis.keys.walk import reused_keys
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.expressions import closure
from pscdsl._src.frontend.interpreter.frames import Frame, Session, require_program
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.live import closure_of
from pscdsl._src.frontend.modules.traces import Trace
from pscdsl._src.frontend.trees import at, leaf, unflatten
from pscdsl._src.frontend.values import Applicable, describe, from_static, is_poisoned
from pscdsl._src.interpreters.replay import has_tangent, over_batch, replay
from pscdsl._src.ir.broadcasting import broadcast_to
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.language.pickling import object_by_name
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    Shape,
    StaticType,
    leaves,
    size_of,
    substitute_tree,
)
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.derivatives import RuleMismatch
from pscdsl.typing.codes.language import MissingAnnotation
from pscdsl.typing.codes.language_evaluation import UnboundedRecursion
from pscdsl.typing.codes.limits import NoRule, NotSupported
from pscdsl.typing.diagnostics import Failure, Severity
from pscdsl.typing.dims import Dim, Size, substitute
from pscdsl.typing.dtypes import DType, defaults
from pscdsl.typing.python_containers import is_sequence, is_tuple
from pscdsl.typing.signatures import StaticSpec
from pscdsl.typing.unify import array_difference

# Rules that users register for their primitives: functions of the language.
#
# A rule is read, not run: it is elaborated for the types at hand into a program, which is then
# appended where the rule is needed. So a kernel that needs it can be checked from its source.


MOST_STEPS = 10_000
"""The most work for the elaboration of one rule."""

Read: TypeAlias = "Callable[[Reader, Any], tuple[list[Value | None], tuple[bool, ...]]]"
"""A function that checks the results of a rule, and returns which are batched in a batch."""

Statics: TypeAlias = tuple[tuple[str, StaticType], ...]
"""The static arguments of a primitive, by name."""

MISSING = {
    "jvp": ("a derivative", "(outputs, primals, tangents)", "the tangents of the results"),
    "transpose": ("a transpose", "(cotangents, operands)", "the cotangents of the operands"),
    "batch": (
        "a batching rule",
        "(operands, batched, size)",
        "the results, and which of them are batched",
    ),
}
"""For each kind of rule its name, its parameters, and its results."""


@dataclass(frozen=True)
class LinearOperand:
    """An operand in which a primitive is transposed, with only its type known."""

    type: ArrayType

    STATIC_ATTRIBUTES: ClassVar = ("dtype", "ndim", "shape")

    def description(self) -> str:
        """Return its description for messages."""
        return f"the operand in which it is linear, of type {self.type}"

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        """The sizes of its axes."""
        return self.type.shape

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.type.shape)


@dataclass(frozen=True, eq=False)
class RuleProgram:
    """The program of a rule, with flags of its results that are not zero or that are batched."""

    block: Block
    kept: tuple[bool, ...]
    flags: tuple[bool, ...]


class Rules:
    """The rules of one primitive, and the programs that were made of them."""

    def __init__(self, name: str, find: Callable[[str], Closure | None]) -> None:
        self.name = name
        self._find = find
        self._made: dict[object, RuleProgram] = {}
        self._active: set[str] = set()

    def jvp(
        self,
        outputs: Sequence[Value],
        primals: Sequence[Value],
        tangents: Sequence[Value | None],
        statics: Statics,
    ) -> list[Value | None]:
        """Return the tangents of the results."""
        wanted = [x.type if has_tangent(x.type) else None for x in outputs]
        here = primals[0].builder.program.current
        arguments = (tuple(outputs), tuple(primals), tuple(tangents))
        return self._run("jvp", here, arguments, statics, _reads("tangent", "result", wanted))[0]

    def transpose(
        self,
        cotangents: Sequence[Value | None],
        operands: Sequence[Value | ArrayType],
        statics: Statics,
    ) -> list[Value | None]:
        """Return the cotangents of the operands that are given by their types."""
        wanted = [x if isinstance(x, ArrayType) else None for x in operands]
        here = next(
            cotangent for cotangent in cotangents if cotangent is not None
        ).builder.program.current
        known = tuple([LinearOperand(x) if isinstance(x, ArrayType) else x for x in operands])
        arguments, read = (tuple(cotangents), known), _reads("cotangent", "operand", wanted)
        return self._run("transpose", here, arguments, statics, read)[0]

    def batch(
        self,
        operands: Sequence[Value],
        batched: Sequence[bool],
        size: Size,
        results: Sequence[ArrayType],
        statics: Statics,
    ) -> tuple[list[Value], list[bool]]:
        """Return the results over a batch, and which of them are batched."""
        here = operands[0].builder.program.current
        arguments = (tuple(operands), tuple(batched), size)
        read = _reads_batch(results, size)
        found, flags = self._run("batch", here, arguments, statics, read, results)
        return [each for each in found if each is not None], list(flags)

    def _run(
        self,
        kind: str,
        here: Builder,
        arguments: tuple[Any, ...],
        statics: Statics,
        read: Read,
        results: Sequence[ArrayType] = (),
    ) -> tuple[list[Value | None], tuple[bool, ...]]:
        """Append a rule's program for these arguments, and return its results."""
        values = [
            x
            for argument in arguments
            if is_tuple(argument)
            for x in argument
            if isinstance(x, Value)
        ]
        pattern = tuple(tuple(map(_type, x)) if is_tuple(x) else x for x in arguments)
        key = (kind, here.facts, pattern, tuple(results), statics)
        if key not in self._made:
            self._made[key] = self._elaborated(kind, here.facts, pattern, statics, read)
        made = self._made[key]
        remaining = iter(replay(here, made.block, values))
        return [next(remaining) if keeps else None for keeps in made.kept], made.flags

    def _elaborated(
        self,
        kind: str,
        facts: Assumptions,
        pattern: tuple[Any, ...],
        statics: Statics,
        read: Read,
    ) -> RuleProgram:
        """Return the program of a rule for some types of its arguments."""
        rule = self._find(kind)
        if rule is None:
            raise Failure(missing(self.name, kind))
        if kind in self._active:
            raise Failure(UnboundedRecursion(function=f"{self.name}.{kind}"))
        flat = [x for item in pattern for x in (item if is_tuple(item) else (item,))]
        program = Program(facts, defaults(x.dtype for x in flat if isinstance(x, ArrayType)))
        program.cut = ()
        session = Session(program, most_steps=MOST_STEPS)
        entry = program.current
        program.span = head = rule.source.span(rule.node).head(len("def"))
        params: list[Value] = []

        def parameter(item: Any) -> Any:
            if not isinstance(item, ArrayType):
                return item
            params.append(entry.parameter(item))
            return params[-1]

        self._active.add(kind)
        try:
            arguments = [tuple(map(parameter, x)) if is_tuple(x) else x for x in pattern]
            result = rule.apply(
                entry, arguments, {n: from_static(each.value) for n, each in statics}
            )
            errors = [finding for finding in session.findings if finding.severity is Severity.ERROR]
            if errors or is_poisoned(result):
                raise Failure(*session.findings)
            if program.devices:
                what = f"a rule of `{self.name}` that calls a kernel with `psc.on_each`"
                raise Failure(NotSupported(what=what, instead="call it outside of the rule"))
            program.span = rule.returned or head
            found, flags = read(Reader(self.name, kind, entry), result)
        except Failure as failure:
            raise failure.at(program.span) from None
        finally:
            self._active.discard(kind)
        block, _ = entry.finish(params, [each for each in found if each is not None])
        whole = Function(f"{self.name}.{kind}", (), facts, block, (), NONE, head, program.origins)
        reused = reused_keys(whole, program.names, program.span)
        if reused:
            raise Failure(*reused)
        return RuleProgram(block, tuple(each is not None for each in found), flags)


def _type(item: Any) -> Any:
    return item.type if isinstance(item, Value) else item


@dataclass(frozen=True)
class Reader:
    """Reads the results of a rule; raises a Failure if they are wrong."""

    primitive: str
    rule: str
    here: Builder

    def items(self, result: Any, what: str, count: int) -> list[Any]:
        """Return the `count` items of a rule's result; a single item needs no tuple."""
        if not is_sequence(result) and count == 1:
            return [result]
        if not is_sequence(result) or len(result) != count:
            self.refuse(f"its {what}", describe(result), f"a tuple of {count}")
        return list(result)

    def array(self, item: Any, what: str, wanted: ArrayType) -> Value | None:
        """Return an array of the type that is wanted; None stays."""
        if item is None:
            return None
        found = leaf(self.here, item)
        if found is None:
            self.refuse(what, describe(item), str(wanted))
        value = at(found, wanted.dtype)
        why = array_difference(self.here.facts, value.type, wanted)
        if why is not None:
            self.refuse(what, str(value.type), str(wanted), why)
        return broadcast_to(value, wanted.shape)

    def refuse(self, what: str, given: str, wanted: str, why: str = "") -> NoReturn:
        """Raise a Failure about the difference."""
        raise Failure(
            RuleMismatch(
                primitive=self.primitive,
                rule=self.rule,
                what=what,
                given=given,
                wanted=wanted,
                why=why,
            )
        )


def _reads(what: str, of: str, wanted: Sequence[ArrayType | None]) -> Read:
    """Return a reader of one array for each type; None means zero, or not needed."""

    def read(reader: Reader, result: Any) -> tuple[list[Value | None], tuple[bool, ...]]:
        items = reader.items(result, f"{what}s", len(wanted))
        return [
            None if type_ is None else reader.array(item, f"the {what} of {of} {place}", type_)
            for place, (item, type_) in enumerate(zip(items, wanted, strict=True))
        ], ()

    return read


def _reads_batch(results: Sequence[ArrayType], size: Size) -> Read:
    """Reads results of these types, or batches of them, and which of them are batches."""

    def read(reader: Reader, result: Any) -> tuple[list[Value | None], tuple[bool, ...]]:
        if not is_tuple(result) or len(result) != 2:
            reader.refuse("its result", describe(result), "a pair, the results and `batched`")
        flags = reader.items(result[1], "flags", len(results))
        if not all(isinstance(flag, bool) for flag in flags):
            reader.refuse("`batched`", describe(result[1]), "a bool for each result")
        types = [over_batch(t, size) if m else t for t, m in zip(results, flags, strict=True)]
        items = reader.items(result[0], "results", len(results))
        values = [
            reader.array(item, f"result {place}", type_)
            for place, (item, type_) in enumerate(zip(items, types, strict=True))
        ]
        if any(value is None for value in values):
            reader.refuse("a result", "None", "an array")
        return values, tuple(flags)

    return read


def missing(primitive: str, kind: str) -> NoRule:
    """Return the diagnostic about a missing rule."""
    called, takes, returns = MISSING[kind]
    instead = f"register one: `@{primitive}.{kind}` on a function of `{takes}` that returns"
    return NoRule(primitive=primitive, rule=called, instead=f"{instead} {returns}")


def registered(function: Closure, definition: object, kind: str) -> Closure | None:
    """Return the rule that the module of a primitive registers by a decorator in its source.

    `function` is the primitive's meaning, `definition` the value of its name in that module.
    """
    found: ast.FunctionDef | None = None
    for statement in function.source.tree.body:
        if isinstance(statement, ast.FunctionDef):
            for name in _decorators(statement, kind):
                if _stands_for(function, name, definition):
                    found = statement
    if found is None:
        return None
    frame = Frame(Session(None), function.source, function.scope, function.outer)
    return closure(frame, found, found.name)


def _decorators(statement: ast.FunctionDef, kind: str) -> Iterator[str]:
    """Yield the names before `.kind` in the decorators of a function."""
    for decorator in statement.decorator_list:
        if isinstance(decorator, ast.Attribute) and decorator.attr == kind:
            if isinstance(decorator.value, ast.Name):
                yield decorator.value.id


def _stands_for(function: Closure, name: str, definition: object) -> bool:
    try:
        return function.scope.lookup(name) is definition
    except (KeyError, Failure):
        return False


# Users' primitives: a typed function as their meaning, a rule for their translation.
#
#     @psc.primitive
#     def cube(x: f32["*s"]) -> f32["*s"]:
#         return x * x * x                      # the meaning, in NumPy
#
#     @cube.translation
#     def _(hlo, x):                            # the StableHLO that is emitted
#         return hlo.binary("multiply", x, hlo.binary("multiply", x, x))
#
# The checker takes the signature at its word, as nothing else can be known of a translation.
#
# Rules for derivatives and batches are written in the language; what they are given, and what they
# return, is what the rules of this package's own primitives do (`pscdsl.primitive`).  Operands are
# the arrays of the arguments in their order, those of tuples and records included.
#
#     @cube.jvp                                 # None is a zero tangent; at least one is given
#     def _(outputs, primals, tangents):
#         (x,), (dx,) = primals, tangents
#         return 3 * x * x * dx                 # for each result; linear in the tangents
#
#     @cube.batch                               # a batch is the first axis, of this size
#     def _(operands, batched, size):
#         return cube(*operands), batched       # the results, and which of them are batched
#
# A primitive that derivatives apply to tangents also needs its transpose: from the cotangents of
# the results to those of the operands in which it is linear.  These are not known; they have
# `shape`, `dtype` and `ndim`.  What is returned for other operands does not count.
#
#     @double.transpose
#     def _(cotangents, operands):
#         (ct,) = cotangents
#         return double(ct)
#
# Static arguments (`k: psc.Static[int]`) are given to every rule by their names.
#
# A rule is registered in the module that defines its primitive, where the checker finds it.


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Callable[..., Any])
Translation = Callable[..., Any]


class UserPrimitive(Generic[P, R]):
    """A function that is a single primitive of the typed program; see `primitive`.

    Examples:
        >>> @psc.primitive
        ... def cube(x: f32["*s"]) -> f32["*s"]:
        ...     return x * x * x
        >>> type(cube).__name__, cube(np.array([1, 2], np.float32))
        ('UserPrimitive', array([1., 8.], dtype=float32))
    """

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
        """Compute the meaning in NumPy, outside of kernels."""
        return self.function(*args, **kwargs)

    def translation(self, rule: Translation) -> Translation:
        """Register `rule(hlo, *operands)`, which emits StableHLO and returns the results.

        Examples:
            >>> @psc.primitive
            ... def twice(x: f64["n"]) -> f64["n"]:
            ...     return x + x
            >>> @twice.translation
            ... def _(hlo, x):
            ...     return hlo.binary("add", x, x)
            >>> @psc.kernel
            ... def shifted(x: f64["n"]) -> f64["n"]:
            ...     return twice(x) + 1
            >>> shifted(np.array([1.0, 2.0]))
            pscdsl.Array([3., 5.], dtype=float64)
        """
        self.rule = rule
        return rule

    def jvp(self, rule: T) -> T:
        """Register `rule(outputs, primals, tangents)`, which returns the results' tangents.

        Examples:
            >>> @psc.primitive
            ... def square(x: f64) -> f64:
            ...     return x * x
            >>> psc.register_translation_rule(square, lambda hlo, x: hlo.binary("multiply", x, x))
            >>> @square.jvp
            ... def _(outputs, primals, tangents):
            ...     (x,), (dx,) = primals, tangents
            ...     return 2 * x * dx
            >>> def loss(x: f64) -> f64:
            ...     return square(x) + 1
            >>> psc.grad(loss)(5.0)
            pscdsl.Array(10., dtype=float64)
        """
        return self._register("jvp", rule)

    def transpose(self, rule: T) -> T:
        """Register `rule(cotangents, operands)`, which returns the operands' cotangents.

        Examples:
            >>> @psc.primitive
            ... def twice(x: f64["n"]) -> f64["n"]:
            ...     return x + x
            >>> psc.register_translation_rule(twice, lambda hlo, x: hlo.binary("add", x, x))
            >>> @twice.transpose
            ... def _(cotangents, operands):
            ...     return twice(*cotangents)
            >>> def linear(x: f64["n"]) -> f64["n"]:
            ...     return twice(x)
            >>> psc.linear_transpose(linear, np.zeros(2))(np.array([1.0, 2.0]))
            (pscdsl.Array([2., 4.], dtype=float64),)
        """
        return self._register("transpose", rule)

    def batch(self, rule: T) -> T:
        """Register `rule(operands, batched, size)`: the results, and which are batched.

        Examples:
            >>> @psc.primitive
            ... def square(x: f64["*s"]) -> f64["*s"]:
            ...     return x * x
            >>> psc.register_translation_rule(square, lambda hlo, x: hlo.binary("multiply", x, x))
            >>> @square.batch
            ... def _(operands, batched, size):
            ...     return square(*operands), batched
            >>> def shifted(x: f64) -> f64:
            ...     return square(x) + 1
            >>> psc.vmap(shifted)(np.array([1.0, 2.0]))
            pscdsl.Array([2., 5.], dtype=float64)
        """
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

    Examples:
        >>> @psc.primitive
        ... def cube(x: f32["*s"]) -> f32["*s"]:
        ...     return x * x * x
        >>> @cube.translation
        ... def _(hlo, x):
        ...     return hlo.binary("multiply", x, hlo.binary("multiply", x, x))
        >>> @psc.kernel
        ... def total(x: f32["n"]) -> f32:
        ...     return np.sum(cube(x))
        >>> total(np.array([1, 2], np.float32))
        pscdsl.Array(9., dtype=float32)
    """
    return UserPrimitive(function)


def register_translation_rule(primitive: UserPrimitive[..., Any], rule: Translation) -> None:
    """Register `rule(hlo, *operands)`, which emits StableHLO and returns the results.

    Examples:
        >>> @psc.primitive
        ... def twice(x: f32["*s"]) -> f32["*s"]:
        ...     return x + x
        >>> psc.register_translation_rule(twice, lambda hlo, x: hlo.binary("add", x, x))
        >>> @psc.kernel
        ... def total(x: f32["n"]) -> f32:
        ...     return np.sum(twice(x))
        >>> total(np.array([1, 2], np.float32))
        pscdsl.Array(6., dtype=float32)
    """
    primitive.translation(rule)


class CustomDefinition(Applicable):
    """A user's primitive as the front end sees it."""

    def __init__(self, closure: Closure, primitive: UserPrimitive[..., Any] | None = None) -> None:
        self.closure = closure
        self.name = closure.name
        self.primitive = primitive
        self.definition = Definition(closure)
        self.rules = Rules(closure.name, self._rule)

    def _rule(self, kind: str) -> Closure | None:
        """Return a rule as its source: the registered one, or one from the module's text."""
        if self.primitive is None:
            return registered(self.closure, self, kind)
        rule = self.primitive.rules.get(kind)
        return None if rule is None else closure_of(rule, Trace(rule))

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Append one equation, its types those of the signature."""
        signature = self.definition.signature
        if signature.result is None:
            span = self.closure.source.span(self.closure.node)
            raise Failure(MissingAnnotation(function=self.name, name="return", span=span))
        here = require_program(here, f"`{self.name}`")
        fit, operands = self.definition.matched(here, args, kwargs)
        declared = signature.result_type(fit.choice)
        tree = substitute_tree(declared, fit.sizes)
        static = {p.name for p in signature.parameters if isinstance(p.spec, StaticSpec)}
        statics = tuple(
            (name, _substitute(value, fit.sizes))
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
        """Return the registered primitive, if its module has been loaded."""
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
        statics = tuple((name, _substitute(value, env)) for name, value in self.statics)
        return replace(super().substitute(env), statics=statics)

    def _numbers(self, number: Callable[[Size], int]) -> dict[str, Any]:
        """Return the static arguments, sizes as numbers."""
        return {
            name: number(each.value) if isinstance(each.value, Dim) else each.value
            for name, each in self.statics
        }

    def _arguments(
        self, operands: Sequence[NDArray], number: Callable[[Size], int]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of the meaning: arrays and static values at their positions."""
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
        """Return one operation for each element of the results: the true cost is unknown."""
        total: Size = 0
        for type_ in outputs:
            total = total + size_of(type_.shape)
        return total


def _substitute(static: StaticType, env: Mapping[str, Size]) -> StaticType:
    def inside(value: object) -> object:
        if isinstance(value, Dim):
            return substitute(value, env)
        return tuple(map(inside, value)) if is_tuple(value) else value

    return StaticType(inside(static.value))


def _require_types(function: str, hlo: Hlo, found: Sequence[H], outputs: Types) -> None:
    """Raise TypeError unless a translation gives the types of the signature."""
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
