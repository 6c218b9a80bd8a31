"""The kernels of a module: those that it defines, and those that its functions make."""

from __future__ import annotations

import ast
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pscdsl._src.frontend.annotations import renamed, spec_of, static_spec
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.interpreter.expressions import closure, evaluate
from pscdsl._src.frontend.interpreter.frames import Frame, Session, Unjoined
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.places import load
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.interpreter.statements import run
from pscdsl._src.frontend.interpreter.writing import definition_in
from pscdsl._src.frontend.modules.scope import StaticModule, decorator_name
from pscdsl._src.frontend.purity import holds_arrays, is_mutable
from pscdsl._src.frontend.text.source import (
    FunctionStatement,
    blocks,
    heading,
    named_parameters,
    statements,
    stores,
    targets,
)
from pscdsl._src.frontend.transformations.derived import (
    DerivedDefinition,
    MadeTransformation,
    derived,
)
from pscdsl._src.frontend.transformations.rules import RuledFunction
from pscdsl._src.frontend.transformations.traced import Transformed
from pscdsl._src.frontend.values import AnyValue, External, Place, Poison, Poisoned, is_traced
from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.language.writes import named
from pscdsl._src.primitives import elementwise as e
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.codes.shapes_of_arguments import AssertionFails
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span
from pscdsl.typing.dims import variable
from pscdsl.typing.dtypes import C128, F64, DType
from pscdsl.typing.signatures import (
    ArraySpec,
    Parameter,
    Signature,
    Spec,
    StaticSpec,
    arrays_of,
)
from pscdsl.typing.static_values import Instance

# The kernels that a module defines: by decorators, by `psc.kernel(…)`, by transformations.


MAKERS = {
    "pscdsl.kernel",
    "psc.grad",
    "psc.value_and_grad",
    "psc.jacfwd",
    "psc.jacrev",
    "psc.hessian",
    "psc.vmap",
    "psc.checkpoint",
}
"""Functions that make kernels of functions."""
Assignment = ast.Assign | ast.AnnAssign


def find_kernels(
    module: StaticModule, diagnostics: list[Diagnostic]
) -> Iterator[tuple[str, Definition]]:
    """Yield the kernels that a module defines, in order; findings on the way are collected."""
    for name, bindings in module.bindings().items():
        *earlier, last = [statement for _, statement in bindings]
        for statement in earlier:  # a name that is bound again: each kernel counts
            if isinstance(statement, FunctionStatement) and statement.decorator_list:
                yield from _kernel(module, name, statement, module.function(statement))
        if not _may_be_kernel(name, last):
            continue
        try:
            if isinstance(last, FunctionStatement) and len(module.names.all_of(name)) > 1:
                value = module.function(last)  # whichever of the statements binds the name
            else:
                value = module.own(name)
        except Failure as failure:
            if isinstance(last, FunctionStatement):
                diagnostics.extend(failure.at(module.source.span(last)).diagnostics)
            continue
        value = definition_in(value)
        if isinstance(last, Assignment) and not isinstance(value, Definition | Transformed):
            diagnostics.extend(_failed_kernel(module, _made_by(name, last)))
        yield from _kernel(module, name, last, value)
        if isinstance(last, ast.ClassDef) and isinstance(value, RecordClass):
            yield from _methods(value, last)


def _methods(cls: RecordClass, statement: ast.ClassDef) -> Iterator[tuple[str, Definition]]:
    """Yield the kernels among the methods that a class statement defines."""
    for node in statement.body:
        member = cls.members.get(getattr(node, "name", ""))
        kernel = None if member is None else definition_in(member.value)
        if isinstance(kernel, Definition) and kernel.closure.node is node:
            yield f"{cls.title}.{kernel.name}", kernel


def _kernel(
    module: StaticModule, name: str, statement: ast.stmt, value: AnyValue
) -> Iterator[tuple[str, Definition]]:
    """Yield the kernel that a statement binds a name to, if it is one."""
    value = definition_in(value)
    if isinstance(value, RuledFunction) and isinstance(statement, FunctionStatement):
        value = definition_in(value.function)  # a kernel is checked whatever its derivative is
    if isinstance(value, DerivedDefinition):
        value = value.transformed
    if isinstance(value, Transformed):
        value = derived(value, _made(module, name, statement))
        if value is not None:
            yield name, value
    elif isinstance(value, Definition) and value.closure.source is module.source:
        yield name, value


def _made(module: StaticModule, name: str, statement: ast.stmt) -> MadeTransformation:
    """Return the place where a module makes a kernel by a transformation."""
    source = module.source
    span = source.span(statement)
    if isinstance(statement, FunctionStatement):
        word = "async def " if isinstance(statement, ast.AsyncFunctionDef) else "def "
        own = replace(span, column=span.column + len(word))
        return MadeTransformation(
            name, source, source.span(statement.decorator_list[0]), own.head(len(name))
        )
    value = _made_by(name, statement)
    place = next(map(source.span, stores(statement, name)), span)
    return MadeTransformation(name, source, span if value is None else source.span(value), place)


def _made_by(name: str, statement: ast.stmt) -> ast.expr | None:
    """Return the expression that an assignment gives to a name; one item of a tuple, if known."""
    match statement:
        case ast.Assign(targets=targets, value=made):
            pass
        case ast.AnnAssign(target=target, value=ast.expr() as made):
            targets = [target]
        case _:
            return None
    for bound in targets:
        match bound, made:
            case (
                (ast.Tuple(elts=names) | ast.List(elts=names)),
                (ast.Tuple(elts=values) | ast.List(elts=values)),
            ):
                for item, value in zip(names, values, strict=False):
                    if isinstance(item, ast.Name) and item.id == name:
                        return value
            case _:
                pass
    return made


def _failed_kernel(module: StaticModule, made_by: ast.expr | None) -> Sequence[Diagnostic]:
    """Return why `f = psc.kernel(…)` or `psc.grad(…)` makes no kernel; empty for other calls."""
    frame = module.frame()
    if not isinstance(made_by, ast.Call):
        return ()
    function = evaluate(frame, made_by.func)
    if getattr(function, "name", "") not in MAKERS:
        return ()
    evaluate(frame, made_by)
    return frame.session.findings


def _may_be_kernel(name: str, statement: ast.stmt) -> bool:
    if isinstance(statement, FunctionStatement):
        return bool(statement.decorator_list)
    if isinstance(statement, ast.ClassDef):
        return any(getattr(each, "decorator_list", ()) for each in statement.body)
    return isinstance(_made_by(name, statement), ast.Call)


def misused_decorators(module: StaticModule) -> Iterator[Diagnostic]:
    """Yield decorators of ours without a meaning: `@psc.kernal`, `@psc.kernel(1)`, on a class."""
    for node in statements(module.source.tree.body):
        if not isinstance(node, FunctionStatement | ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            root: ast.expr = decorator
            while isinstance(root, ast.Attribute | ast.Call):
                root = root.func if isinstance(root, ast.Call) else root.value
            if not isinstance(root, ast.Name) or not _is_ours(module, root.id):
                continue
            frame = module.frame()
            value = evaluate(frame, decorator)
            yield from frame.session.findings
            if isinstance(node, ast.ClassDef) and getattr(value, "name", "") == "pscdsl.kernel":
                finding = Unsupported(what="a class as a kernel", rewrite="decorate a function")
                yield finding.at(module.source.span(decorator))


def _is_ours(module: StaticModule, name: str) -> bool:
    """Return whether a module-level name is our package, or something imported from it."""
    for _, statement in module.bindings().get(name, ()):
        match statement:
            case ast.Import(names=names):
                bound = [each.asname or each.name for each in names if each.name == "pscdsl"]
                return name in bound
            case ast.ImportFrom(module="pscdsl", level=0):
                return True
            case ast.ImportFrom():
                return False
            case _:
                pass
    return False


DECORATED = "what another decorator makes of it is not known"
NOT_RUN = "it stands in a branch that is not taken, or in a loop"


@dataclass(frozen=True)
class Unchecked:
    """A kernel that is known only at run time."""

    name: str
    reason: str
    place: Span
    """The place where it begins."""
    node: FunctionStatement | None = None
    around: ast.FunctionDef | None = None
    """The function of the module that contains it, if there is one."""
    decorator: str = ""
    """The qualified name of a decorator that is not known."""
    decorated_at: Span | None = None
    """The place of its decorator."""


def unchecked_kernels(module: StaticModule, checked: set[ast.AST]) -> Iterator[Unchecked]:
    """Yield kernels that are known only at run time, such as those inside functions or classes.

    `checked` has the functions that were checked.
    """
    for name, bindings in module.bindings().items():
        statement = bindings[-1][1]
        if isinstance(statement, Assignment) and _may_be_kernel(name, statement):
            inner = _unknown_inside(module, name)
            if inner is not None:
                reason = f"nothing is known of `{inner.name}`, of which it is made"
                yield Unchecked(name, reason, _made(module, name, statement).span)
    yield from _unchecked_functions(module, checked)


def _unknown_inside(module: StaticModule, name: str) -> External | None:
    """Return the value that a name transforms, if that value is unknown."""
    try:
        value = module.own(name)
    except Failure:
        return None
    if not isinstance(value, Transformed):
        return None
    while isinstance(value, Transformed):
        value = value.function
    return value if isinstance(value, External) else None


def _unchecked_functions(module: StaticModule, checked: set[ast.AST]) -> Iterator[Unchecked]:
    frame = module.frame()
    bound = {each for bindings in module.bindings().values() for _, each in bindings}

    def unknown_decorator(node: FunctionStatement) -> tuple[str, Span | None]:
        """Return the unknown decorator, and the place where it is written."""
        for decorator in node.decorator_list:
            if name := decorator_name(frame, decorator):
                return name, module.source.span(decorator)
        return "", None

    def is_kernel(node: FunctionStatement) -> bool:
        for decorator in node.decorator_list:
            value = evaluate(frame, decorator)
            if getattr(value, "name", "") == "pscdsl.kernel":
                return True
        return False

    def visit(
        body: Sequence[ast.stmt], prefix: str, inside: str, around: ast.FunctionDef | None = None
    ) -> Iterator[Unchecked]:
        for node in body:
            if isinstance(node, FunctionStatement):
                if node not in checked and node.decorator_list and is_kernel(node):
                    reason = DECORATED if node in bound else NOT_RUN
                    if inside:
                        reason = f"it is defined inside {inside}"
                    place = module.source.span(node).head(3)
                    unknown = unknown_decorator(node) if reason == DECORATED else ("", None)
                    yield Unchecked(prefix + node.name, reason, place, node, around, *unknown)
                own = node if isinstance(node, ast.FunctionDef) and node in bound else None
                inner = f"{prefix}{node.name}"
                yield from visit(node.body, f"{inner}.", f"the function `{inner}`", own)
            elif isinstance(node, ast.ClassDef):
                inner = f"{prefix}{node.name}"
                yield from visit(node.body, f"{inner}.", f"the class `{inner}`")
            else:
                for each in blocks(node):
                    yield from visit(each, prefix, inside)

    yield from visit(module.source.tree.body, "", "")


# Kernels that functions make: checked for whatever the function may be given.
#
#     def make(scale: float, w: f32["m"]):
#         w = psc.constant(w)
#
#         @psc.kernel
#         def scaled(x: f32["n"]) -> f32["n"]: ...
#
# Such a kernel may read parameters of the function around it whose types are declared, and names
# bound once, before the kernel, by a statement that uses only such names. The kernel is then
# checked as if it had those parameters itself: arrays that `psc.constant` made for all sizes, a
# float or complex number as an unknown one, other static values like `psc.Static`. All other names
# are known only when the function runs, and are reported (PSC903).


NUMBERS: Final[Mapping[type, DType]] = {float: F64, complex: C128}
"""The dtype of a number of which only the type is known."""


class NotKnown(Exception):
    """A value around a kernel that it reads, and that is known only when the function runs."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Surroundings:
    """The values that a kernel reads from the function that makes it."""

    function: Closure
    parameters: tuple[Parameter, ...]
    """The function's parameters that are read, with their names in the kernel's signature."""
    names: Mapping[str, str]
    """Their names in the function, by those names."""
    numbers: frozenset[str]
    """The parameters that are numbers of Python's."""
    statements: tuple[ast.stmt, ...]
    """The statements that bind the other names, in order."""
    captured: frozenset[str]
    """The names that functions read: the kernel itself, and those that it calls."""
    constants: frozenset[str]
    """The names that are bound to `psc.constant` of another one."""
    computed: frozenset[str]
    """The names that are bound to more than arithmetic: NumPy may give them a dtype."""


class MadeDefinition(Definition):
    """A kernel that a function makes; its parameters include values read from that function."""

    def __init__(self, own: Closure, around: Surroundings) -> None:
        super().__init__(own)
        self.name = f"{around.function.name}.{own.name}"
        self.around = around

    def _read_signature(self) -> Signature:
        own = super()._read_signature()
        return replace(own, parameters=(*self.around.parameters, *own.parameters))

    def shown(self) -> Signature:
        """Return the kernel's own signature, without parameters of the function around it."""
        signature = self.signature
        own = signature.parameters[len(self.around.parameters) :]
        return replace(signature, parameters=own)

    def sampled(self) -> MadeDefinition | None:
        """Return the kernel with a sample for each number; None if it reads no number."""
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
        made = MadeDefinition(self.closure, one)
        made.writes = self.writes
        return made

    def _run(self, session: Session, arguments: dict[str, Place]) -> AnyValue:
        around = self.around
        function = around.function
        frame = Frame(session, function.source, function.scope, None, None, function)
        for parameter in around.parameters:
            value = arguments.pop(parameter.name)
            if parameter.name in around.numbers:
                assert isinstance(value, Value)
                value = _number(value)
            frame.names[around.names[parameter.name]] = value
        session.root = function  # its assertions are assumed, as in a kernel
        run(frame, around.statements)
        for finding in session.findings:
            if isinstance(finding, AssertionFails):
                raise Excluded(finding)
            raise NotKnown(f"in `{function.name}`: {finding.message()}")
        for name, each in frame.names.items():
            if isinstance(each, Unjoined):
                continue
            value = load(each)
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
        return load(made.enter(session, made.bind((), arguments)))


def _sample(spec: Spec) -> Spec:
    """Return the specification of a number as a static value with one sample."""
    assert isinstance(spec, ArraySpec)
    cls = next(cls for cls, each in NUMBERS.items() if each is spec.dtype)
    return StaticSpec(cls.__name__, (cls(0.5),), Instance(cls))


def _number(value: Value) -> Weak:
    """Return an unknown Python number, which takes the dtype of its other operand."""
    kind = value.type.dtype.kind

    def at(wanted: DType) -> Value:
        return value if wanted is value.type.dtype else e.Convert(wanted)(value)

    return Weak(value.builder, kind, (), at, scalar=True)


def made_kernel(
    function: AnyValue, node: FunctionStatement, kernels: Collection[ast.AST]
) -> MadeDefinition:
    """Return the kernel that a function makes; NotKnown if it depends on more than parameters.

    `function` is the module's value by the name of the function around; `kernels` are all nodes
    that are kernels: they write nothing.
    """
    if not isinstance(function, Closure) or node not in getattr(function.node, "body", ()):
        raise NotKnown("what decorators make of the function around it is not known")
    around = function.node
    assert isinstance(around, FunctionStatement)
    bound = _bindings(around)
    for each in heading(node):
        if name := next((name for name in _names(each) if name in bound), ""):
            raise NotKnown(f"its types or defaults depend on `{name}` of `{function.name}`")
    statements = _followed(function.name, around, node, bound)
    read = {name for each in (node, *statements) for name in _names(each)} & bound.keys()
    given = [each for each in named_parameters(around) if each.arg in read]
    functions = (statement for statement in statements if isinstance(statement, FunctionStatement))
    captured = frozenset(name for each in (node, *functions) for name in _names(each))
    own = Closure(node.name, node, function.source, function.scope)
    names = {
        *Definition(own).signature.size_names(),
        *(each.arg for each in named_parameters(node)),
    }
    parameters: dict[str, Parameter] = {}
    numbers: set[str] = set()
    for each in given:
        found, is_number = _parameter(function, each, names)
        parameters[each.arg] = found
        if is_number:
            numbers.add(found.name)
        if not isinstance(found.spec, StaticSpec) and not is_number:
            _require_unwritten(function.name, around, each.arg, {node, *statements, *kernels})
    made = MadeDefinition(
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
    made.writes = _declared_writes(node)
    return made


def _declared_writes(kernel: FunctionStatement) -> tuple[AnyValue, ...]:
    """Return the parameters that a kernel's decorators declare as written; NotKnown if unknown."""
    given = [
        option.value
        for decorator in kernel.decorator_list
        if isinstance(decorator, ast.Call)
        for option in decorator.keywords
        if option.arg in (None, "writes")
    ]
    try:
        found = [ast.literal_eval(each) for each in given]
    except ValueError:
        raise NotKnown("which parameters it writes is computed") from None
    return tuple([name for each in found if each is not None for name in named(each)])


def _calls(statement: ast.stmt) -> bool:
    """Return whether a statement binds names to more than arithmetic of names and numbers."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    plain = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.IfExp)
    others = (ast.operator, ast.unaryop, ast.expr_context)
    return not all(isinstance(node, plain + others) for node in ast.walk(statement.value))


def _constants(function: Closure, statements: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names that are bound to results of `psc.constant`."""
    frame = function.annotation_frame()
    for statement in statements:
        match statement:
            case ast.Assign(targets=bound, value=ast.Call(func=made_by, args=arguments)) if all(
                isinstance(argument, ast.Name) for argument in arguments
            ):
                if getattr(evaluate(frame, made_by), "name", "") == "psc.constant":
                    yield from (name.id for name in bound if isinstance(name, ast.Name))
            case _:
                pass


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node reads."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id


def _bindings(around: FunctionStatement) -> dict[str, list[ast.AST]]:
    """Return the bindings of each name of a function: parameters, and statements of its body."""
    found: dict[str, list[ast.AST]] = {each.arg: [each] for each in named_parameters(around)}
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
    """Return the statements that bind names of a kernel, and assertions about them, in order."""
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
    """Return whether a parameter is bound only once more, as in `w = psc.constant(w)`."""
    match bindings:
        case [
            ast.arg(),
            ast.Assign(
                targets=[ast.Name()],
                value=ast.Call(func=function, args=[ast.Name(id=given)], keywords=[]),
            ),
        ]:
            return given == name and ast.unparse(function).endswith("constant")
        case _:
            return False


def _parameter(function: Closure, node: ast.arg, taken: Container[str]) -> tuple[Parameter, bool]:
    """Return a parameter of the function around, and whether it is a Python number."""
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
    if any(each.python for each in arrays_of(spec)):
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
