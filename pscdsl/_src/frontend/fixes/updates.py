"""Changes in place: a new value under the same name instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pscdsl._src.frontend.fixes.place import Place
from pscdsl._src.frontend.interpreter.operators import SIGNS
from pscdsl._src.frontend.purity import index_text
from pscdsl._src.frontend.text.source import last_name, named_parameters, stores, targets
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.diagnostics import Applicability, Edit, Fix, Span

# Lists that are built by methods: a comprehension, or a new list under the same name.


LIST = {
    "append": "[*{x}, {0}]",
    "extend": "[*{x}, *{0}]",
    "sort": "sorted({x})",
    "reverse": "{x}[::-1]",
    "clear": "[]",
}
DICT = {"update": "{{**{x}, **{0}}}", "clear": "{{}}"}


def list_method(
    place: Place[Mutation], attribute: ast.Attribute, call: ast.Call, statement: ast.Expr
) -> Iterator[Fix]:
    """Replace `items.append(item)` and the like, as a statement."""
    name = place.named(attribute.value)
    table = LIST if place.finding.what.startswith("`list.") else DICT
    template = table.get(attribute.attr)
    if name is None or template is None or call.keywords or place.tree.arguments(call) is None:
        return
    if len(call.args) != template.count("{0}"):
        return
    assert isinstance(attribute.value, ast.Name)
    applicability: Applicability = "unsafe" if place.shared(attribute.value) else "safe"
    if attribute.attr == "append":
        found = _comprehension(place, name, call.args[0], statement, applicability)
        if found is not None:
            yield found
            return
    texts = [_spread(place, argument, template) for argument in call.args]
    yield from place.replace(
        statement, f"{name} = {template.format(*texts, x=name)}", applicability
    )


def _spread(place: Place[Mutation], node: ast.expr, template: str) -> str:
    return place.tree.operand(node) if "*{0}" in template else place.tree.argument(node)


def _comprehension(
    place: Place[Mutation],
    name: str,
    item: ast.expr,
    statement: ast.Expr,
    applicability: Applicability,
) -> Fix | None:
    """Write `items = [item for …]` in place of `items = []` and the appending loop after it."""
    tree = place.tree
    loop = place.parent(statement, ast.For)
    function = tree.function(statement)
    if loop is None or function is None or loop.orelse or loop.body != [statement]:
        return None
    block = tree.block(loop)
    before = block.index(loop) - 1
    start = block[before] if before >= 0 else None
    match start:
        case ast.Assign(targets=[ast.Name(id=bound)], value=ast.List(elts=[])) if bound == name:
            pass
        case _:
            return None
    counters = targets(loop.target)
    inside = set(ast.walk(loop))
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node not in inside and node.id in counters:
            return None  # the counter is used elsewhere, and a comprehension has its own
    uses = [n for n in inside if isinstance(n, ast.Name) and n.id == name]
    if len(uses) != 1 or any(isinstance(n, ast.NamedExpr) for n in inside):
        return None
    first, last = tree.source.span(start), tree.source.span(loop)
    whole = Span(first.path, first.line, first.column, last.end_line, last.end_column)
    if tree.has_comment(whole):
        return None
    loops = f"for {tree.text(loop.target)} in {tree.operand(loop.iter)}"
    text = f"{name} = [{tree.argument(item)} {loops}]"
    return Fix("replace the loop by a comprehension", (Edit(whole, text),), applicability)


Where = Place[Mutation]
COMBINE = {"Add": "add", "Mult": "multiply"}


@dataclass(frozen=True)
class MethodUpdate:
    """A function with the effect of a method that changes an array; it returns a new one."""

    function: str
    counts: tuple[int, ...]
    """The accepted numbers of positional arguments."""
    applicability: Applicability | None = None
    """The safety of the fix; None if it depends on other holders of the array."""


METHODS = {
    "sort": MethodUpdate("np.sort", (0, 1)),
    "fill": MethodUpdate("np.full_like", (1,)),
    "put": MethodUpdate("psc.update", (2,), "unsafe"),  # its indices count through all axes
}
FUNCTIONS = {
    "put": ("psc.update", (0, 1, 2)),
    "place": ("np.where", (1, 2, 0)),
    "putmask": ("np.where", (1, 2, 0)),
}
"""Functions that change their first argument: the pure function, and the order of its arguments."""
UFUNCS = {"add": "add", "multiply": "multiply", "minimum": "minimum", "maximum": "maximum"}
"""The `combine` of `np.add.at` and the like."""


def mutation(place: Where) -> Iterator[Fix]:
    """Replace a change in place, or declare it."""
    yield from _in_its_place(place)
    if place.finding.parameter:
        yield from _declared(place, place.finding.parameter)


def _declared(place: Where, name: str) -> Iterator[Fix]:
    """Add `@psc.kernel(writes="x")` to the kernel around."""
    node = next(iter(place.tree.at(place.finding.span)), None)
    function = None if node is None else place.tree.function(node)
    if not isinstance(function, ast.FunctionDef):
        return
    if name not in [each.arg for each in named_parameters(function)]:
        return
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=made_by, args=arguments, keywords=options):
                pass
            case made_by:
                arguments, options = [], []
        if last_name(made_by) != "kernel":
            continue
        message = f"declare that `{function.name}` writes to `{name}`"
        given = next((each for each in options if each.arg == "writes"), None)
        if given is not None:
            try:
                known = ast.literal_eval(given.value)
            except ValueError:
                return
            names = (known,) if isinstance(known, str) else tuple(known)
            quoted = ", ".join(f'"{each}"' for each in (*names, name))
            yield from place.replace(given.value, f"({quoted})", message=message)
            return
        texts = ", ".join([*map(place.tree.text, [*arguments, *options]), f'writes="{name}"'])
        yield from place.replace(decorator, f"{place.tree.text(made_by)}({texts})", message=message)
        return


def _in_its_place(place: Where) -> Iterator[Fix]:
    """Replace a change in place."""
    for node in place.nodes:
        match node:
            case ast.AugAssign(target=ast.Name() as target):
                yield from _update(place, node, target)
            case ast.Subscript(ctx=ast.Store()):
                yield from _store(place, node)
            case ast.Attribute() if called := place.call_statement(node):
                yield from _method(place, node, *called)
            case ast.Call(func=function):
                called = place.call_statement(function)
                if called is not None and isinstance(function, ast.Attribute):
                    yield from _method(place, function, *called)
                yield from _function(place, node)
            case _:
                continue
        return


def _update(place: Where, node: ast.AugAssign, target: ast.Name) -> Iterator[Fix]:
    """Write `y += 1` as `y = y + 1`, which differs in NumPy if others hold the array."""
    if place.named(target) is not None:
        text = f"{target.id} = {target.id} {SIGNS[type(node.op).__name__]}"
        text += f" {place.tree.operand(node.value)}"
        yield from place.replace(node, text, "unsafe" if place.shared(target) else "safe")


def _store(place: Where, target: ast.Subscript) -> Iterator[Fix]:
    """Rewrite `x[i] = v` and `x[i] += v`."""
    name = place.named(target.value)
    if name is None or "psc.update(" not in place.finding.rewrite:
        return
    statement = place.tree.parent(target)
    index = index_text(place.tree.text(target.slice), target.slice)
    match statement:
        case ast.Assign(targets=[_], value=given):
            value, combine = place.tree.argument(given), ""
        case ast.AugAssign(op=sign, value=given):
            operation = type(sign).__name__
            value, combine = place.tree.argument(given), COMBINE.get(operation, "")
            if not combine or not _each_once(place, target.slice):
                # If an index occurs twice, NumPy's `x[i] += v` adds once: the last write wins.
                operand = place.tree.operand(given)
                value, combine = f"{place.tree.text(target)} {SIGNS[operation]} {operand}", ""
        case _:
            return
    how = f', combine="{combine}"' if combine else ""
    yield from _rebound(place, statement, target.value, f"{name}, {index}, {value}{how}")


def _rebound(
    place: Where,
    statement: ast.stmt,
    owner: ast.expr,
    arguments: str,
    function: str = "psc.update",
    applicability: Applicability | None = None,
) -> Iterator[Fix]:
    """Write `x = function(arguments)` in place of a statement that changes `x`."""
    assert isinstance(owner, ast.Name)
    kind, _, attribute = function.partition(".")
    module = place.psc() if kind == "psc" else place.numpy()
    if module is None:
        return
    needs: list[Edit] = list(module[1])
    if "np.s_[" in arguments:
        numpy = place.numpy()
        if numpy is None:
            return
        arguments = arguments.replace("np.s_[", f"{numpy[0]}.s_[", 1)
        needs += numpy[1]
    applicability = applicability or ("unsafe" if place.shared(owner) else "safe")
    text = f"{owner.id} = {module[0]}.{attribute}({arguments})"
    yield from place.replace(statement, text, applicability, needs=needs)


def _each_once(place: Where, index: ast.expr) -> bool:
    """Return whether an index selects each element at most once: numbers, slices, loop counters."""
    match index:
        case ast.Tuple(elts=elements):
            return all(_each_once(place, element) for element in elements)
        case ast.UnaryOp(operand=operand):
            return _each_once(place, operand)
        case ast.BinOp(left=left, right=right):
            return _each_once(place, left) and _each_once(place, right)
        case ast.Name(id=name):
            function = place.tree.function(index)
            bound = [] if function is None else stores(function, name)
            return bool(bound) and all(_is_counter(place.tree.parent(each)) for each in bound)
        case _:
            return isinstance(index, ast.Constant | ast.Slice)


def _is_counter(parent: ast.AST | None) -> bool:
    """Return whether a name with this parent counts through a `range`."""
    match parent:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
            return True
        case _:
            return False


def _method(
    place: Where, attribute: ast.Attribute, call: ast.Call, statement: ast.Expr
) -> Iterator[Fix]:
    """Rewrite `x.sort()`, `np.add.at(x, i, v)`, `items.append(item)`."""
    if place.finding.what.startswith(("`list.", "`dict.")):
        yield from list_method(place, attribute, call, statement)
        return
    texts = place.tree.arguments(call)
    if texts is None:
        return
    match attribute:
        case ast.Attribute(value=ast.Attribute(attr=ufunc), attr="at") if ufunc in UFUNCS:
            if len(texts) == 3 and place.named(call.args[0]) and not call.keywords:
                given = f'{", ".join(texts)}, combine="{UFUNCS[ufunc]}"'
                yield from _rebound(place, statement, call.args[0], given)
            return
        case _:
            pass
    name, found = place.named(attribute.value), METHODS.get(attribute.attr)
    if name is not None and found is not None and len(texts) in found.counts:
        texts += [place.tree.text(keyword) for keyword in call.keywords]
        given = ", ".join((name, *texts))
        yield from _rebound(
            place, statement, attribute.value, given, found.function, found.applicability
        )


def _function(place: Where, call: ast.Call) -> Iterator[Fix]:
    """Rewrite `np.put(x, i, v)` as a statement, and `out=`."""
    statement = place.parent(call, ast.Expr)
    texts = place.tree.arguments(call)
    if statement is None or texts is None:
        return
    out = next((keyword for keyword in call.keywords if keyword.arg == "out"), None)
    if out is not None:
        name = place.named(out.value)
        if name is not None:
            texts += [place.tree.text(keyword) for keyword in call.keywords if keyword is not out]
            text = f"{name} = {place.tree.text(call.func)}({', '.join(texts)})"
            yield from place.replace(statement, text)
        return
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if function in FUNCTIONS and len(texts) == 3 and not call.keywords:
        instead, order = FUNCTIONS[function]
        if place.named(call.args[0]) is not None:
            given = ", ".join(texts[each] for each in order)
            yield from _rebound(place, statement, call.args[0], given, instead, "unsafe")
