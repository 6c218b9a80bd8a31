"""Kernels that functions make: checked for whatever the function may be given.

    def make(scale: float, w: f32["m"]):
        w = psc.constant(w)

        @psc.kernel
        def scaled(x: f32["n"]) -> f32["n"]: ...

What such a kernel reads of the function around it is a parameter whose type is declared, or bound
once, before the kernel, by a statement that follows from such names.  The kernel is then checked as
if it had those parameters itself: arrays that `psc.constant` made for all sizes, a float or complex
number as one of which nothing is known, other static values as `psc.Static` is.  All else is known
only when the function runs, and says so (PSC903).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.interpreter.expressions import closure, evaluate
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.statements import run
from pscdsl._src.frontend.specs.annotations import renamed, spec_of, static_spec
from pscdsl._src.frontend.text.source import FunctionStatement, targets
from pscdsl._src.frontend.values.closed import holds_arrays, is_mutable
from pscdsl._src.frontend.values.values import External, Poison, Poisoned, is_traced
from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.primitives import elementwise as e
from pscdsl.typing.codes.shapes_of_arguments import AssertionFails
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import variable
from pscdsl.typing.dtypes import C128, F64, DType
from pscdsl.typing.signatures import ArraySpec, Parameter, Signature, Spec, StaticSpec
from pscdsl.typing.static_values import Instance

NUMBERS: Final[Mapping[type, DType]] = {float: F64, complex: C128}
"""The dtype of a number of which nothing is known but its type."""


class NotKnown(Exception):
    """What a kernel reads of the function around it is known only when that runs."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Surroundings:
    """What a kernel reads of the function that makes it."""

    function: Closure
    parameters: tuple[Parameter, ...]
    """Those of the function that are read, with their names in the kernel's signature."""
    names: Mapping[str, str]
    """Their names in the function, by those names."""
    numbers: frozenset[str]
    """The parameters that are numbers of Python's."""
    statements: tuple[ast.stmt, ...]
    """What binds the other names, in order."""
    captured: frozenset[str]
    """The names that functions read: the kernel itself, and those that it calls."""
    constants: frozenset[str]
    """The names that are bound to what `psc.constant` makes of another one."""
    computed: frozenset[str]
    """The names that are bound to more than arithmetic: NumPy may give them a dtype."""


class MadeDefinition(Definition):
    """A kernel that a function makes, with what it reads of that function as parameters."""

    def __init__(self, own: Closure, around: Surroundings) -> None:
        super().__init__(own)
        self.name = f"{around.function.name}.{own.name}"
        self.around = around

    def _read_signature(self) -> Signature:
        own = super()._read_signature()
        return Signature(own.name, (*self.around.parameters, *own.parameters), own.result)

    def shown(self) -> Signature:
        """The signature that the kernel has, without what is read of the function around it."""
        signature = self.signature
        own = signature.parameters[len(self.around.parameters) :]
        return replace(signature, parameters=own)

    def sampled(self) -> MadeDefinition | None:
        """The same for one value of each number; None if there is no number."""
        around = self.around
        if not around.numbers:
            return None
        parameters = [
            replace(parameter, spec=_sample(parameter.spec))
            if parameter.name in around.numbers
            else parameter
            for parameter in around.parameters
        ]
        one = replace(around, parameters=tuple(parameters), numbers=frozenset())
        return MadeDefinition(self.closure, one)

    def _run(self, session: Session, arguments: dict[str, Any]) -> Any:
        around = self.around
        function = around.function
        frame = Frame(session, function.source, function.scope, None, None, function)
        for parameter in around.parameters:
            value = arguments.pop(parameter.name)
            name = around.names[parameter.name]
            frame.names[name] = _number(value) if parameter.name in around.numbers else value
        session.root = function  # what it asserts is assumed, as in a kernel
        run(frame, around.statements)
        for finding in session.findings:
            if isinstance(finding, AssertionFails):
                raise Excluded(finding)
            raise NotKnown(f"in `{function.name}`: {finding.message()}")
        for name, value in frame.names.items():
            if holds_arrays(value) and name in around.captured - around.constants:
                what = f"`{name}` of `{function.name}` may be written"
                raise NotKnown(f"{what}: bind it to `psc.constant(…)`")
            if is_traced(value) and name in around.computed - around.constants:
                raise NotKnown(f"what NumPy makes of `{name}` in `{function.name}` is not followed")
            if is_mutable(value):
                raise NotKnown(f"`{name}` of `{function.name}` may be changed")
            if isinstance(value, External | Poison):
                raise NotKnown(f"nothing is known of `{name}` of `{function.name}`")
        node = self.closure.node
        made = closure(frame, node, self.closure.name)
        session.root = made
        return made.enter(session, made.bind((), arguments))


def _sample(spec: Spec) -> Spec:
    """A number as a static value, of which one is tried."""
    assert isinstance(spec, ArraySpec)
    cls = next(cls for cls, each in NUMBERS.items() if each is spec.dtype)
    return StaticSpec(cls.__name__, (cls(0.5),), Instance(cls))


def _number(value: Value) -> Weak:
    """A number of Python's of which nothing is known, in the dtype of whatever it meets."""
    kind = value.type.dtype.kind

    def at(wanted: DType) -> Value:
        return value if wanted is value.type.dtype else e.Convert(wanted)(value)

    return Weak(value.builder, kind, (), at, scalar=True)


def made_kernel(
    function: Any, node: FunctionStatement, kernels: Collection[ast.AST]
) -> MadeDefinition:
    """The kernel that a function makes; NotKnown if it follows from more than its parameters.

    `function` is what the module has by the name of the function around; `kernels` are all nodes
    that are kernels: they write nothing.
    """
    if not isinstance(function, Closure) or node not in getattr(function.node, "body", ()):
        raise NotKnown("what decorators make of the function around it is not known")
    around = function.node
    assert isinstance(around, FunctionStatement)
    bound = _bindings(around)
    for each in _outside(node):
        if name := next((name for name in _names(each) if name in bound), ""):
            raise NotKnown(f"its types or defaults depend on `{name}` of `{function.name}`")
    statements = _followed(function.name, around, node, bound)
    read = {name for each in (node, *statements) for name in _names(each)} & bound.keys()
    given = [each for each in _parameters(around) if each.arg in read]
    functions = (statement for statement in statements if isinstance(statement, FunctionStatement))
    captured = frozenset(name for each in (node, *functions) for name in _names(each))
    own = Closure(node.name, node, function.source, function.scope)
    names = {*Definition(own).signature.size_names(), *(each.arg for each in _parameters(node))}
    parameters: dict[str, Parameter] = {}
    numbers: set[str] = set()
    for each in given:
        found, is_number = _parameter(function, each, names)
        parameters[each.arg] = found
        if is_number:
            numbers.add(found.name)
        if not isinstance(found.spec, StaticSpec) and not is_number:
            _require_unwritten(function.name, around, each.arg, {node, *statements, *kernels})
    return MadeDefinition(
        own,
        Surroundings(
            function,
            tuple(parameters.values()),
            {found.name: name for name, found in parameters.items()},
            frozenset(numbers),
            tuple(statements),
            captured,
            frozenset(_constants(function, statements)),
            frozenset(
                name for statement in statements if _calls(statement) for name in targets(statement)
            ),
        ),
    )


def _calls(statement: ast.stmt) -> bool:
    """Whether a statement binds names to more than arithmetic of names and numbers."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    plain = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.IfExp)
    others = (ast.operator, ast.unaryop, ast.expr_context)
    return not all(isinstance(node, plain + others) for node in ast.walk(statement.value))


def _constants(function: Closure, statements: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that are bound to what `psc.constant` makes."""
    frame = function.annotation_frame()
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            if not all(isinstance(given, ast.Name) for given in statement.value.args):
                continue
            if getattr(evaluate(frame, statement.value.func), "name", "") == "psc.constant":
                yield from (name.id for name in statement.targets if isinstance(name, ast.Name))


def _parameters(node: FunctionStatement) -> list[ast.arg]:
    spec = node.args
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]


def _outside(kernel: FunctionStatement) -> Iterator[ast.AST]:
    """What is evaluated where the kernel is made, not where it runs."""
    yield kernel.args
    yield from kernel.decorator_list
    if kernel.returns is not None:
        yield kernel.returns


def _names(node: ast.AST) -> Iterator[str]:
    """The names that stand in a node, but for those that it only binds."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id


def _bindings(around: FunctionStatement) -> dict[str, list[ast.AST]]:
    """What binds each name of a function: its parameters, and statements of its body."""
    found: dict[str, list[ast.AST]] = {each.arg: [each] for each in _parameters(around)}
    for other in (around.args.vararg, around.args.kwarg):
        if other is not None:
            found[other.arg] = [other, around.args]
    for statement in around.body:
        for name in targets(statement):
            found.setdefault(name, []).append(statement)
    for node in ast.walk(around):
        if isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                found.setdefault(name, []).extend((node, node))
    return found


def _followed(
    title: str,
    around: FunctionStatement,
    kernel: FunctionStatement,
    bound: Mapping[str, Sequence[ast.AST]],
) -> list[ast.stmt]:
    """The statements that bind what a kernel reads, and what is asserted of that, in order."""
    before = around.body[: around.body.index(kernel)]
    statements: set[ast.stmt] = set()
    read: set[str] = set()
    wanted = [*_names(kernel)]
    while wanted:
        name = wanted.pop()
        if name in read or name not in bound:
            continue
        read.add(name)
        statement = bound[name][-1]
        if len(bound[name]) > 1 and not _is_made_constant(name, bound[name]):
            raise NotKnown(f"`{name}` of `{title}` is bound more than once")
        if statement is kernel:
            raise NotKnown("it calls itself")
        if isinstance(statement, ast.arg):
            continue
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.FunctionDef):
            raise NotKnown(f"`{name}` of `{title}` is bound in a way that is not followed")
        if statement not in before:
            raise NotKnown(f"`{name}` of `{title}` is bound after it")
        statements.add(statement)
        wanted.extend(_names(statement))
    asserted = (
        each
        for each in before
        if isinstance(each, ast.Assert) and bound.keys() & {*_names(each)} <= read
    )
    return [each for each in before if each in {*statements, *asserted}]


def _is_made_constant(name: str, bindings: Sequence[ast.AST]) -> bool:
    """Whether a parameter is bound once more, to what a call makes of it: `w = psc.constant(w)`."""
    given, made = bindings[0], bindings[-1]
    return (
        len(bindings) == 2
        and isinstance(given, ast.arg)
        and isinstance(made, ast.Assign)
        and len(made.targets) == 1
        and isinstance(made.targets[0], ast.Name)
        and isinstance(made.value, ast.Call)
        and ast.unparse(made.value.func).endswith("constant")
        and [ast.unparse(argument) for argument in made.value.args] == [name]
        and not made.value.keywords
    )


def _parameter(function: Closure, node: ast.arg, taken: Container[str]) -> tuple[Parameter, bool]:
    """A parameter of the function around; whether it is a number of Python's."""
    title = f"`{node.arg}`, a parameter of `{function.name}`,"
    if node.annotation is None:
        raise NotKnown(f"{title} has no declared type")
    frame = function.annotation_frame()
    name = f"{function.name}.{node.arg}" if node.arg in taken else node.arg
    span = frame.span(node)
    spec: Spec
    try:
        spec = spec_of(frame, node.annotation)
    except (Failure, Poisoned):
        spec = static_spec(frame, node.annotation)
    if isinstance(spec, StaticSpec) and isinstance(spec.form, Instance):
        number = NUMBERS.get(spec.form.cls)
        if number is not None:
            return Parameter(name, ArraySpec(number, (), span), span=span), True
    if isinstance(spec, StaticSpec) and spec.samples is None:
        raise NotKnown(f"of {title} only the type is known")
    sizes = Signature("", (Parameter(name, spec),), None).size_names()
    own = {size: (variable(f"{function.name}_{size}"),) for size in sizes if size in taken}
    return Parameter(name, renamed(spec, own) if own else spec, span=span), False


def _require_unwritten(
    title: str, around: FunctionStatement, name: str, read: Collection[ast.AST]
) -> None:
    """Refuse an array that the function around may write or give away."""

    def mentions(node: ast.AST) -> bool:
        if node in read:
            return False
        if isinstance(node, ast.Name) and node.id == name:
            return True
        return any(map(mentions, ast.iter_child_nodes(node)))

    if any(map(mentions, around.body)):
        raise NotKnown(f"`{name}` may be written elsewhere in `{title}`")
