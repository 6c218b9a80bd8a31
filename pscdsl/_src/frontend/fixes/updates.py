"""Changes in place: a new value under the same name instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pscdsl._src.frontend.fixes.place import Place
from pscdsl._src.frontend.interpreter.operators import SIGNS
from pscdsl._src.frontend.purity import index_text
from pscdsl._src.frontend.text.source import targets
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
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if name is None or template is None or call.keywords or starred:
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
    if not isinstance(start, ast.Assign) or len(start.targets) != 1:
        return None
    empty = isinstance(start.value, ast.List) and not start.value.elts
    if targets(start) != [name] or not empty:
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
    spec = function.args
    if name not in [each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]:
        return
    for decorator in function.decorator_list:
        made_by = decorator.func if isinstance(decorator, ast.Call) else decorator
        text = place.tree.text(made_by)
        if text.rpartition(".")[2] != "kernel":
            continue
        message = f"declare that `{function.name}` writes to `{name}`"
        options = decorator.keywords if isinstance(decorator, ast.Call) else []
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
        before: list[ast.AST] = list(options)
        if isinstance(decorator, ast.Call):
            before = [*decorator.args, *before]
        arguments = ", ".join([*map(place.tree.text, before), f'writes="{name}"'])
        whole = f"{text}({arguments})"
        yield from place.replace(decorator, whole, message=message)
        return


def _in_its_place(place: Where) -> Iterator[Fix]:
    """Replace a change in place."""
    update = place.node(ast.AugAssign)
    if update is not None and isinstance(update.target, ast.Name):
        yield from _update(place, update, update.target)
        return
    target = place.node(ast.Subscript)
    if target is not None and isinstance(target.ctx, ast.Store):
        yield from _store(place, target)
        return
    attribute = place.node(ast.Attribute)
    called = None if attribute is None else place.call_statement(attribute)
    if attribute is not None and called is not None:
        yield from _method(place, attribute, *called)
        return
    call = place.node(ast.Call)
    if call is not None:
        if isinstance(call.func, ast.Attribute):
            called = place.call_statement(call.func)
            if called is not None:
                yield from _method(place, call.func, *called)
        yield from _function(place, call)


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
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        value, combine = place.tree.argument(statement.value), ""
    elif isinstance(statement, ast.AugAssign):
        operation = type(statement.op).__name__
        value, combine = place.tree.argument(statement.value), COMBINE.get(operation, "")
        if not combine or not _each_once(place, target.slice):
            # If an index occurs twice, NumPy's `x[i] += v` adds once: the last write wins.
            operand = place.tree.operand(statement.value)
            value, combine = f"{place.tree.text(target)} {SIGNS[operation]} {operand}", ""
    else:
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
    function = place.tree.function(index)
    if isinstance(index, ast.Tuple):
        return all(_each_once(place, element) for element in index.elts)
    if isinstance(index, ast.UnaryOp):
        return _each_once(place, index.operand)
    if isinstance(index, ast.BinOp):
        return _each_once(place, index.left) and _each_once(place, index.right)
    if isinstance(index, ast.Name) and function is not None:
        stores = [
            place.tree.parent(node)
            for node in ast.walk(function)
            if isinstance(node, ast.Name)
            and node.id == index.id
            and isinstance(node.ctx, ast.Store)
        ]
        return bool(stores) and all(
            isinstance(each, ast.For)
            and isinstance(each.iter, ast.Call)
            and isinstance(each.iter.func, ast.Name)
            and each.iter.func.id == "range"
            for each in stores
        )
    return isinstance(index, ast.Constant | ast.Slice)


def _method(
    place: Where, attribute: ast.Attribute, call: ast.Call, statement: ast.Expr
) -> Iterator[Fix]:
    """Rewrite `x.sort()`, `np.add.at(x, i, v)`, `items.append(item)`."""
    if place.finding.what.startswith(("`list.", "`dict.")):
        yield from list_method(place, attribute, call, statement)
        return
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return
    texts = [place.tree.argument(argument) for argument in call.args]
    ufunc = attribute.value
    if attribute.attr == "at" and isinstance(ufunc, ast.Attribute) and ufunc.attr in UFUNCS:
        if len(texts) == 3 and place.named(call.args[0]) and not call.keywords:
            given = f'{", ".join(texts)}, combine="{UFUNCS[ufunc.attr]}"'
            yield from _rebound(place, statement, call.args[0], given)
        return
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
    if statement is None or any(isinstance(argument, ast.Starred) for argument in call.args):
        return
    texts = [place.tree.argument(argument) for argument in call.args]
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
