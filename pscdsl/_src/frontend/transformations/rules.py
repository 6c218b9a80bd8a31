"""Derivatives of an author's own: `custom_jvp`, `custom_vjp`, and solutions of equations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from pscdsl._src.frontend.interpreter.frames import inner_block, require_program
from pscdsl._src.frontend.interpreter.functions import Closure, items_of
from pscdsl._src.frontend.text.bindings import uses
from pscdsl._src.frontend.text.source import FunctionNode, parameters
from pscdsl._src.frontend.transformations.derivatives import (
    at_place,
    fitted,
    linear_transpose,
    linearize_,
    tangent_tree,
)
from pscdsl._src.frontend.transformations.traced import Argument, Traced, trace
from pscdsl._src.frontend.trees import (
    applicable,
    flatten,
    of_values,
    pair_in,
    strong,
    unflatten,
)
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Args,
    Kwargs,
    StaticFunction,
    describe,
)
from pscdsl._src.interpreters.replay import has_tangent
from pscdsl._src.ir.builder import Builder, PythonNumber, Value
from pscdsl._src.ir.program import Block, Var
from pscdsl._src.primitives.custom_derivatives import CustomJvp, CustomVjp, LinearSolve, Root, Rule
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.array_types import NONE, ArrayType, TupleType, Type, leaves
from pscdsl.typing.codes.control import BadBody, SolutionMismatch
from pscdsl.typing.codes.derivatives import OwnRuleMismatch, RuleMissing
from pscdsl.typing.codes.language import BadArguments, NoSuchAttribute, NotStatic
from pscdsl.typing.diagnostics import Failure, Label
from pscdsl.typing.python_containers import is_integer_scalar, is_tuple

if TYPE_CHECKING:
    from pscdsl._src.frontend.modules.scope import StaticModule


# `custom_linear_solve` and `custom_root`: solutions with the derivatives of their equations.


@dataclass(frozen=True)
class _First(Applicable):
    """A function that returns a tuple of one, without the tuple."""

    function: Applicable

    def holds(self) -> Sequence[AnyValue]:
        """Return the function."""
        return (self.function,)

    def apply(self, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        found = self.function.apply(here, args, kwargs)
        assert is_tuple(found)
        first: AnyValue = found[0]
        return first


@dataclass(frozen=True)
class _Traced:
    """A function as a block, its captured values, and the tree of its auxiliary results."""

    block: Block
    captured: list[Value]
    aux: Type = NONE


@dataclass(frozen=True)
class _Problem:
    """The types of the wanted solution."""

    name: str
    types: tuple[ArrayType, ...]
    tree: Type

    def block(
        self,
        here: Builder,
        what: str,
        arguments: int,
        run: Callable[[Builder, list[AnyValue]], AnyValue],
        has_aux: bool = False,
    ) -> _Traced:
        """Return `run` as a block from `arguments` trees like the solution to another one."""
        with inner_block(here) as inner:
            given = [[inner.parameter(type_) for type_ in self.types] for _ in range(arguments)]
            found = run(inner, [unflatten(self.tree, iter(each)) for each in given])
            aux: AnyValue = None
            if has_aux:
                needs = f"a pair from {what}, the solution and what is found besides"
                found, aux = pair_in(
                    found, lambda given: BadBody(combinator=self.name, needs=needs, found=given)
                )
            values = fitted(inner, found, self.tree, f"what {what} returns", self._mismatch(what))
            extra, tree = flatten(inner, aux, f"what {what} returns besides")
            more = strong(extra)
            params = [param for each in given for param in each]
            block, captured = inner.finish(params, [*values, *more])
        return _Traced(block, list(captured), of_values(tree, more))

    def _mismatch(self, what: str) -> Callable[[str, str, str, str], SolutionMismatch]:
        def mismatch(path: str, given: str, wanted: str, why: str) -> SolutionMismatch:
            place = at_place(what, path)
            return SolutionMismatch(
                combinator=self.name, what=place, given=given, wanted=wanted, why=why
            )

        return mismatch


def _problem(here: Builder, name: str, what: str, value: AnyValue) -> tuple[_Problem, list[Value]]:
    """Return a problem whose solution is like a value, and its leaves."""
    here = require_program(here, f"`{name}`")
    found, tree = flatten(here, value, f"{what} of `{name}`")
    leaves = strong(found)
    types = tuple([leaf.type for leaf in leaves])
    if not types or not all(map(has_tangent, types)):
        needs = f"floating-point or complex arrays as {what}"
        raise Failure(BadBody(combinator=name, needs=needs, found=describe(value)))
    return _Problem(name, types, of_values(tree, leaves)), leaves


def _given(traced: _Traced, problem: _Problem, results: Sequence[Value], has_aux: bool) -> AnyValue:
    """Return the solution, with the auxiliary results if `has_aux`."""
    count = len(problem.types)
    solution = unflatten(problem.tree, iter(results[:count]))
    return (solution, unflatten(traced.aux, iter(results[count:]))) if has_aux else solution


def custom_linear_solve(
    here: Builder,
    matvec: AnyValue,
    b: AnyValue,
    solve: AnyValue,
    transpose_solve: AnyValue,
    symmetric: bool,
    has_aux: bool,
) -> AnyValue:
    """Return the result of `solve(matvec, b)`, with the derivative of the exact solution."""
    name = "psc.custom_linear_solve"
    operator, solver = applicable(matvec, name), applicable(solve, name)
    problem, right = _problem(here, name, "the right side", b)
    equation = problem.block(here, "`matvec`", 1, lambda inner, x: operator.apply(inner, x, {}))
    found = problem.block(
        here,
        "`solve`",
        1,
        lambda inner, x: solver.apply(inner, [operator, *x], {}),
        has_aux,
    )
    if symmetric:
        results = found.block.results[: len(problem.types)]
        back = _Traced(replace(found.block, results=results), found.captured)
    elif transpose_solve is not None:
        transposed = applicable(transpose_solve, name)

        def run(inner: Builder, x: list[AnyValue]) -> AnyValue:
            transpose = _First(linear_transpose(inner, operator, *x))
            return transposed.apply(inner, [transpose, *x], {})

        back = problem.block(here, "`transpose_solve`", 1, run)
    else:
        back = None
    behind = [] if back is None else back.captured
    counts = len(equation.captured), len(found.captured), len(behind)
    primitive = LinearSolve(equation.block, found.block, counts, back.block if back else None)
    operands = [*equation.captured, *found.captured, *behind, *right]
    return _given(found, problem, here.bind(primitive, operands), has_aux)


def custom_root(
    here: Builder,
    f: AnyValue,
    initial_guess: AnyValue,
    solve: AnyValue,
    tangent_solve: AnyValue,
    has_aux: bool,
) -> AnyValue:
    """Return the result of `solve(f, initial_guess)`, with the derivative of the root of `f`."""
    name = "psc.custom_root"
    function, solver, tangent = (applicable(x, name) for x in (f, solve, tangent_solve))
    problem, guess = _problem(here, name, "the guess", initial_guess)
    equation = problem.block(here, "`f`", 1, lambda inner, x: function.apply(inner, x, {}))
    found = problem.block(
        here,
        "`solve`",
        1,
        lambda inner, x: solver.apply(inner, [function, *x], {}),
        has_aux,
    )

    def along(inner: Builder, given: list[AnyValue]) -> AnyValue:
        root, value = given
        _, linear, *_ = linearize_(inner, function, root)
        return tangent.apply(inner, [linear, value], {})

    moved = problem.block(here, "`tangent_solve`", 2, along)
    counts = len(equation.captured), len(found.captured), len(moved.captured)
    primitive = Root(equation.block, found.block, counts, moved.block)
    operands = [*equation.captured, *found.captured, *moved.captured, *guess]
    return _given(found, problem, here.bind(primitive, operands), has_aux)


# `custom_jvp` and `custom_vjp`: functions whose derivative their author gives.


Kind = Literal["custom_jvp", "custom_vjp"]
REGISTER = {"custom_jvp": "defjvp", "custom_vjp": "defvjp"}


@dataclass
class Recursion:
    """Rules that are being elaborated, and whether they were met again on the way."""

    rules: list[Rule]
    captured: list[list[Value]]
    """The known captured values of each rule."""
    used: bool = False

    def settle(
        self, number: int, inner: Builder, params: Sequence[Value], results: Sequence[Value]
    ) -> list[Value]:
        """Finish the block of a rule; return its captured values, the known ones first."""
        known: list[Var] = []
        for value in self.captured[number]:
            inner.atom(value)
            assert isinstance(value.atom, Var)
            known.append(value.atom)
        for value in results:
            inner.atom(value)
        rest = [var for var in inner.captured if var not in known]
        inner.captured = {var: inner.captured[var] for var in (*known, *rest)}
        block, captured = inner.finish(params, results)
        self.rules[number].settle(block)
        return list(captured)


class RuledFunction(Applicable):
    """A function with rules for its derivative, as the front end sees it."""

    def __init__(
        self,
        kind: Kind,
        function: Applicable,
        nondiff_argnums: Sequence[AnyValue] = (),
        rules: Callable[[], Sequence[Applicable]] | None = None,
    ) -> None:
        self.kind = kind
        self.function = function
        self.nondiff_argnums: list[int] = []
        for place in nondiff_argnums:
            if not (isinstance(place, int) or is_integer_scalar(place)) or place < 0:
                problem = f"takes places counted from 0 as `nondiff_argnums`, not {describe(place)}"
                raise Failure(BadArguments(function=f"psc.{kind}", problem=problem))
            self.nondiff_argnums.append(int(place))
        self.rules: tuple[Applicable, ...] = ()
        self._loaded = rules
        self._looked_through = False
        """Whether nothing else in the module gives it rules."""
        self._active: dict[tuple[int, tuple[Type, ...]], Recursion] = {}
        """The rules that are being elaborated, by the program and the types of the arguments."""

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "name", "…"))

    def _closure(self) -> AnyValue:
        """Return the function's syntax, if it has one: its own, or that of a kernel."""
        closure: AnyValue = getattr(self.function, "closure", self.function)
        return closure

    def lookup_attribute(self, name: str) -> AnyValue:
        """Return `f.defjvp` or `f.defvjp`."""
        if name == REGISTER[self.kind]:
            return StaticFunction(f"{self.name}.{name}", self._register)
        known = (REGISTER[self.kind],)
        raise Failure(NoSuchAttribute(owner=f"`{self.name}`", attribute=name, known=known))

    def _register(self, here: Builder, *rules: AnyValue) -> AnyValue:
        wanted = 1 if self.kind == "custom_jvp" else 2
        if len(rules) != wanted:
            name = f"psc.{self.kind}.{REGISTER[self.kind]}"
            problem = f"takes {wanted} function{'s' * (wanted > 1)}"
            raise Failure(BadArguments(function=name, problem=problem))
        self.rules = tuple(applicable(rule, f"{self.name}.{REGISTER[self.kind]}") for rule in rules)
        return rules[0] if self.kind == "custom_jvp" else None

    def given_rules(self) -> tuple[Applicable, ...]:
        """Return the rules; a Failure if there are none."""
        if self._looked_through:
            return self.rules
        if not self.rules and self._loaded is not None:
            self.rules = tuple(self._loaded())
        module = self._module()
        if not self.rules and module is not None:
            register_rules(module, self)  # nothing has been run
        if not self.rules:
            register = REGISTER[self.kind]
            raise Failure(RuleMissing(function=self.name, kind=self.kind, register=register))
        if module is not None:
            _require_only_statements(module, self)
        self._looked_through = True
        return self.rules

    def _module(self) -> StaticModule | None:
        """Return the module whose text the function was read from; None if it was loaded."""
        # Modules have functions with rules.
        from pscdsl._src.frontend.modules.scope import StaticModule

        scope = getattr(self._closure(), "scope", None)
        return scope if isinstance(scope, StaticModule) else None

    def holds(self) -> Sequence[AnyValue]:
        """Return the function and its rules."""
        return self.function, *self.rules

    def apply(self, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        """Bind one equation, which has the rules for its derivatives."""
        here = require_program(here, f"`{self.name}`")
        rules = self.given_rules()
        args = self._positional(args, kwargs)
        varying = [place for place in range(len(args)) if place not in self.nondiff_argnums]
        name = f"psc.{self.kind}"
        traced = trace(here, name, self.function, args, {}, varying)
        trees = tuple(each.tree for each in traced.varying.values())
        key = (id(here.program), trees)
        known = self._active.get(key)
        if known is not None:
            known.used = True
            return self._equation(here, traced, known.rules, known.captured)
        captured: list[list[Value]] = [[] for _ in rules]
        while True:
            made = Recursion([Rule() for _ in rules], captured)
            self._active[key] = made
            try:
                found = self._elaborated(here, rules, traced, args, made)
            finally:
                del self._active[key]
            if not made.used or list(map(len, found)) == list(map(len, captured)):
                break
            captured = found  # a rule that calls its function passes on its captured values
        return self._equation(here, traced, made.rules, found)

    def _elaborated(
        self,
        here: Builder,
        rules: Sequence[Applicable],
        traced: Traced,
        args: Args,
        made: Recursion,
    ) -> list[list[Value]]:
        """Elaborate the rules; return the captured values of each, the known ones first."""
        if self.kind == "custom_jvp":
            return [self._jvp_rule(here, rules[0], traced, args, made)]
        saved, ahead = self._forward(here, rules[0], traced, args, made)
        return [ahead, self._backward(here, rules[1], traced, args, saved, made)]

    def _equation(
        self,
        here: Builder,
        traced: Traced,
        rules: Sequence[Rule],
        captured: Sequence[Sequence[Value]],
    ) -> AnyValue:
        counts = [len(value) for value in captured]
        primitive: CustomJvp | CustomVjp
        if self.kind == "custom_jvp":
            primitive = CustomJvp(self.name, traced.block, (len(traced.captured), *counts), *rules)
        else:
            primitive = CustomVjp(self.name, traced.block, (len(traced.captured), *counts), *rules)
        more = [value for each in captured for value in each]
        results = here.bind(primitive, [*traced.captured, *more, *traced.leaves])
        return unflatten(traced.result, iter(results))

    def _given(self, args: Args) -> list[AnyValue]:
        """Return the arguments that are not differentiated, which rules take first."""
        return [args[place] for place in self.nondiff_argnums if place < len(args)]

    def _positional(self, args: Args, kwargs: Kwargs) -> list[AnyValue]:
        closure = self._closure()
        if not isinstance(closure, Closure):
            return list(args)
        return list(closure.bind(args, kwargs).values())

    def _jvp_rule(
        self, here: Builder, rule: Applicable, traced: Traced, args: Args, made: Recursion
    ) -> list[Value]:
        """Elaborate the rule for tangents; return its captured values."""
        varying = list(traced.varying.values())
        with inner_block(here) as inner, _blaming(rule):
            primals = [inner.parameter(x.type) for x in traced.leaves]
            tangents = [inner.parameter(x.type) for x in traced.leaves if has_tangent(x.type)]
            first, second = iter(primals), iter(tangents)
            arguments = tuple([each.unflatten(first) for each in varying])
            moves = tuple([each.tangents(tangent_tree(each.tree), second) for each in varying])
            found = rule.apply(inner, [*self._given(args), arguments, moves], {})
            value, tangent = self._pair(found, "the result and its tangent")
            values = self._fitting(inner, value, traced.result, "the result")
            wanted = tangent_tree(traced.result)
            moving = self._fitting(inner, tangent, wanted, "the tangent of the result")
            return made.settle(0, inner, [*primals, *tangents], [*values, *moving])

    def _forward(
        self, here: Builder, rule: Applicable, traced: Traced, args: Args, made: Recursion
    ) -> tuple[Argument, list[Value]]:
        """Elaborate the first rule of a vjp; return its residuals and its captured values."""
        with inner_block(here) as inner, _blaming(rule):
            primals = [inner.parameter(x.type) for x in traced.leaves]
            remaining = iter(primals)
            full = list(args)
            for place, each in traced.varying.items():
                full[place] = each.unflatten(remaining)
            found = rule.apply(inner, full, {})
            value, kept = self._pair(found, "the result and what is saved")
            values = self._fitting(inner, value, traced.result, "the result")
            saved, tree = flatten(inner, kept, f"what the rule of `{self.name}` saves")
            extra = strong(saved)
            numbers = [isinstance(each, PythonNumber) for each in saved]
            captured = made.settle(0, inner, primals, [*values, *extra])
        return Argument(extra, of_values(tree, extra), numbers), captured

    def _backward(
        self,
        here: Builder,
        rule: Applicable,
        traced: Traced,
        args: Args,
        saved: Argument,
        made: Recursion,
    ) -> list[Value]:
        """Elaborate the second rule of a vjp; return its captured values."""
        wanted = TupleType(tuple(tangent_tree(each.tree) for each in traced.varying.values()))
        received = tangent_tree(traced.result)
        with inner_block(here) as inner, _blaming(rule):
            params = [inner.parameter(leaf) for leaf in leaves(saved.tree)]
            cotangents = [inner.parameter(leaf) for leaf in leaves(received)]
            kept = saved.unflatten(params)
            cotangent = unflatten(received, iter(cotangents))
            found = rule.apply(inner, [*self._given(args), kept, cotangent], {})
            if len(wanted.items) == 1 and not is_tuple(found):
                found = (found,)  # the cotangent of a single argument needs no tuple
            if is_tuple(found) and len(found) == len(traced.varying):
                found = tuple(map(_of_number, traced.varying.values(), found))
            values = self._fitting(inner, found, wanted, "the cotangents of the arguments")
            return made.settle(1, inner, [*params, *cotangents], values)

    def _pair(self, found: AnyValue, parts: str) -> tuple[AnyValue, AnyValue]:
        what, wanted = "its value", f"a pair: {parts}"
        return pair_in(
            found,
            lambda given: OwnRuleMismatch(
                function=self.name, what=what, given=given, wanted=wanted
            ),
        )

    def _fitting(self, here: Builder, found: AnyValue, wanted: Type, what: str) -> list[Value]:
        """Return the leaves of a rule's result; a Failure if their types are not the function's."""

        def mismatch(path: str, given: str, wanted: str, why: str) -> OwnRuleMismatch:
            place = at_place(what, path)
            return OwnRuleMismatch(
                function=self.name, what=place, given=given, wanted=wanted, why=why
            )

        return fitted(here, found, wanted, f"what the rule of `{self.name}` returns", mismatch)


def _of_number(argument: Argument, cotangent: AnyValue) -> AnyValue:
    """Return the cotangent of an argument; for a Python number, a scalar of any dtype."""
    if argument.numbers == [True] and isinstance(cotangent, Value) and not cotangent.shape:
        (number,) = argument.leaves
        if cotangent.dtype.is_float and number.dtype.is_float:
            return cast(cotangent, number.dtype)
    return cotangent


@contextmanager
def _blaming(rule: Applicable) -> Generator[None]:
    """Label findings about a rule's result with the rule."""
    try:
        yield
    except Failure as failure:
        if not isinstance(rule, Closure):
            raise
        place = rule.source.span(rule.node)
        if place.line != place.end_line:  # a `def`: its first line is enough
            place = place.head(len("def"))
        label = Label(place, "the rule")
        raise Failure(
            *[
                d.labelled(label) if isinstance(d, OwnRuleMismatch) else d
                for d in failure.diagnostics
            ]
        ) from None


def register_rules(module: StaticModule, ruled: RuledFunction) -> None:
    """Evaluate the statements of a module that give a function its rules."""
    # Expressions may call functions with rules.
    from pscdsl._src.frontend.interpreter.expressions import evaluate

    for statement in module.source.tree.body:
        match statement:
            case ast.FunctionDef(decorator_list=decorators):
                if any(_registers(module, decorator, ruled) for decorator in decorators):
                    module.function(statement)
            case ast.Expr(value=ast.Call(func=func) as call) if _registers(module, func, ruled):
                frame = module.frame()
                evaluate(frame, call)
                if frame.session.findings:
                    raise Failure(*frame.session.findings)
            case _:
                pass


def _require_only_statements(module: StaticModule, ruled: RuledFunction) -> None:
    """Raise a Failure if anything but statements of the module may give a function its rules."""
    index = uses(module.source)
    for node in index.attributes.get(REGISTER[ruled.kind], ()):
        owner = node.value
        if isinstance(owner, ast.Name) and index.owner(owner, owner.id) is None:
            own = _own(module, owner.id)
            if own is not ruled and isinstance(own, RuledFunction):
                continue
            if own is ruled and _is_statement(module, node):
                continue
        elif isinstance(owner, ast.Name):
            scope = index.owner(owner, owner.id)
            if isinstance(scope, FunctionNode) and owner.id not in parameters(scope):
                continue  # a distinct function, made there
        what = f"which rules `{ruled.name}` has, where `{module.source.text_of(node)}` is used"
        rewrite = f"register them by a statement of the module, `{ruled.name}.{node.attr}(…)`"
        raise Failure(NotStatic(what=what, rewrite=rewrite, span=module.source.span(node)))


def _is_statement(module: StaticModule, node: ast.Attribute) -> bool:
    """Return whether an attribute is called, or decorates, in the body of the module itself."""
    index = uses(module.source)
    parent = index.parents.get(node)
    body = module.source.tree.body
    if isinstance(parent, ast.FunctionDef):
        return any(parent is statement for statement in body)
    above = index.parents.get(parent) if isinstance(parent, ast.Call) else None
    return isinstance(above, ast.Expr) and any(above is statement for statement in body)


def _own(module: StaticModule, name: str) -> AnyValue:
    try:
        value: AnyValue = module.own(name)
        return value
    except (KeyError, Failure):
        return None


def _registers(module: StaticModule, node: ast.expr, ruled: RuledFunction) -> bool:
    """Return whether this is `f.defjvp` of this function."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return attribute == REGISTER[ruled.kind] and _own(module, name) is ruled
        case _:
            return False


def make_ruled(kind: Kind) -> Callable[..., AnyValue]:
    """Read `@psc.custom_jvp` or `@psc.custom_vjp`."""

    def make(here: Builder, fun: AnyValue = None, /, nondiff_argnums: AnyValue = ()) -> AnyValue:
        if fun is None:
            return StaticFunction(f"psc.{kind}", partial(make, nondiff_argnums=nondiff_argnums))
        return RuledFunction(kind, applicable(fun, f"psc.{kind}"), items_of(nondiff_argnums))

    return make
