"""Calls and names: Python's functions where NumPy's are meant, misspelt names, mere effects."""

from __future__ import annotations

import ast
import builtins
import itertools
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from pscdsl._src.frontend.fixes.place import Place
from pscdsl._src.frontend.interpreter.operators import around
from pscdsl._src.frontend.purity import ALONG_AXIS, COMPILERS, DIFFERS, index_text
from pscdsl._src.frontend.text.source import FunctionNode, FunctionStatement, last_name, targets
from pscdsl.numpy.methods import FUNCTIONS_ELSEWHERE
from pscdsl.typing import dtypes
from pscdsl.typing.codes.language import (
    ArrayLeavesProgram,
    BadArguments,
    LoopOverArray,
    NoSuchAttribute,
    NotCallable,
    UnknownName,
)
from pscdsl.typing.codes.limits import KernelNotChecked, UnknownFunction, UnknownValue
from pscdsl.typing.codes.purity import SideEffect
from pscdsl.typing.codes.shapes import DataDependentShape, OutgrownUpdate, ShapesDoNotBroadcast
from pscdsl.typing.codes.shapes_of_arguments import InnerSizesDiffer
from pscdsl.typing.diagnostics import Edit, Fix, Span

CASTS = ("float", "int", "bool", "complex")
ON_ARRAYS = {
    ("max", 1): "max",
    ("max", 2): "maximum",
    ("min", 1): "min",
    ("min", 2): "minimum",
    ("any", 1): "any",
    ("all", 1): "all",
}
"""Python's functions, with how many arguments, and NumPy's of the same meaning for arrays."""
USUAL = {"np": "import numpy as np", "math": "import math", "functools": "import functools"}
"""The usual import of each name."""


def array_leaves_program(place: Place[ArrayLeavesProgram]) -> Iterator[Fix]:
    """Keep an array in the program: by a cast, NumPy's function, or the array itself."""
    function = place.finding.function
    call = place.node(ast.Call)
    if call is None or call.keywords:
        return
    if function in (".item", ".tolist"):
        if isinstance(call.func, ast.Attribute) and not call.args:
            yield from place.replace(call, place.tree.operand(call.func.value))
        return
    texts = place.tree.arguments(call)
    if texts is None:
        return
    if function in CASTS and len(texts) == 1:
        yield from place.replace(call, f"{place.tree.receiver(call.args[0])}.astype({function})")
        return
    meant = ON_ARRAYS.get((function, len(texts)))
    if meant is None and function.startswith("math."):
        found = re.search(r"`np\.(\w+)`", place.finding.rewrite)
        meant = found[1] if found else None
    numpy = place.numpy()
    if meant is not None and numpy is not None:
        text = f"{numpy[0]}.{meant}({', '.join(texts)})"
        yield from place.replace(call, text, "safe", needs=numpy[1])


def loop_over_array(place: Place[LoopOverArray]) -> Iterator[Fix]:
    """Use NumPy's function for `sorted`; in a comprehension, the array for `list(array)`."""
    call, numpy = place.node(ast.Call), place.numpy()
    texts = None if call is None or call.keywords else place.tree.arguments(call)
    if call is None or texts is None or len(texts) != 1:
        return
    match call.func:
        case ast.Name(id="sorted") if numpy is not None:
            text = f"{numpy[0]}.sort({texts[0]})"
            yield from place.replace(call, text, "safe", needs=numpy[1])
        case ast.Name(id="list" | "tuple") if place.parent(call, ast.comprehension) is not None:
            yield from place.replace(call, texts[0], "safe")
        case _:
            pass


MOST_NAMES = 500
"""Among more names none is looked for that is alike: each mistake would take long."""


def no_such_attribute(place: Place[NoSuchAttribute]) -> Iterator[Fix]:
    """Use the only similar name, or `psc.update` in place of JAX's `.at`."""
    attribute = place.node(ast.Attribute)
    finding = place.finding
    if attribute is not None and attribute.attr == "at":
        yield from _updated_at(place, attribute)
        return
    if attribute is not None and finding.instead:
        yield from _as_function(place, attribute)
        return
    near = get_close_matches(finding.attribute, finding.known, 2, 0.75)
    if attribute is None or not near or (len(near) > 1 and not _clearly(finding.attribute, near)):
        return
    yield from _renamed(place, attribute, near[0])


def _as_function(place: Place[NoSuchAttribute], attribute: ast.Attribute) -> Iterator[Fix]:
    """Use a function in place of another library's array method, or of one that NumPy lacks."""
    special = re.fullmatch(r"`psc\.(special\.\w+)`", place.finding.instead)
    if special is not None and (psc := place.psc()) is not None:
        yield from place.replace(attribute, f"{psc[0]}.{special[1]}", needs=psc[1])
        return
    call, here = place.parent(attribute, ast.Call), FUNCTIONS_ELSEWHERE.get(attribute.attr, "")
    if call is None or call.func is not attribute or not here:
        return
    package, _, rest = here.partition(".")
    module = place.numpy() if package == "numpy" else place.psc()
    if module is not None:
        operands = [place.tree.argument(attribute.value)]
        operands += [place.tree.text(each) for each in (*call.args, *call.keywords)]
        text = f"{module[0]}.{rest}({', '.join(operands)})"
        yield from place.replace(call, text, needs=module[1])


def _clearly(name: str, near: list[str]) -> bool:
    """Return whether the first candidate is so near that the second does not matter."""
    return bool(get_close_matches(name, near[:1], 1, 0.9)) and not get_close_matches(
        name, near[1:], 1, 0.9
    )


AT = {
    **{"set": "", "add": "add", "multiply": "multiply", "mul": "multiply"},
    **{"min": "minimum", "max": "maximum"},
}
"""Methods of JAX's `x.at[index]`, and the `combine` of `psc.update`."""
WRITTEN_INDICES = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.USub, ast.expr_context)
"""Nodes of indices that are numbers, for which the checker knows whether they are in range."""


def _updated_at(place: Place[NoSuchAttribute], attribute: ast.Attribute) -> Iterator[Fix]:
    """Use `psc.update(x, i, v)` for `x.at[i].set(v)`, and for further calls chained to it."""
    psc, numpy = place.psc(), place.numpy()
    if psc is None or numpy is None:
        return
    text, done, slices = place.tree.argument(attribute.value), None, False
    caveat = ""
    at: ast.Attribute | None = attribute
    while at is not None and at.attr == "at":
        item = place.parent(at, ast.Subscript)
        method = None if item is None else place.parent(item, ast.Attribute)
        call = None if method is None else place.parent(method, ast.Call)
        if item is None or method is None or call is None:
            break
        if method.attr not in AT or len(call.args) != 1 or call.keywords:
            break
        index = index_text(place.tree.text(item.slice), item.slice)
        slices |= index.startswith("np.s_[")
        if not all(isinstance(each, WRITTEN_INDICES) for each in ast.walk(item.slice)):
            caveat = "an index out of range is clamped, where jax leaves the value out"
        given = [text, index.replace("np.s_[", f"{numpy[0]}.s_[", 1)]
        given.append(place.tree.argument(call.args[0]))
        if AT[method.attr]:
            given.append(f'combine="{AT[method.attr]}"')
        text, done = f"{psc[0]}.update({', '.join(given)})", call
        at = place.parent(call, ast.Attribute)
    if done is not None:
        needs = (*psc[1], *(numpy[1] if slices else ()))
        yield from place.replace(done, text, needs=needs, caveat=caveat)


def unknown_elsewhere(place: Place[UnknownFunction | UnknownValue]) -> Iterator[Fix]:
    """Use the name under which NumPy or we have the function of another library."""
    finding = place.finding
    call = place.node(ast.Call)
    node = place.node(ast.Attribute, ast.Name) if call is None else call.func
    name = finding.function if isinstance(finding, UnknownFunction) else finding.name
    if isinstance(finding, UnknownFunction) and finding.decorator:
        name = finding.decorator
    yield from _uncompiled(place, name)
    here = finding.here
    if node is None or not here:
        return
    by_axis = call is not None and any(each.arg == "axis" for each in call.keywords)
    if by_axis or (call is not None and len(call.args) == 2):
        here = ALONG_AXIS.get(name, here)
    package, _, rest = here.partition(".")
    if package == "numpy" and name == f"jax.numpy.{rest}":
        edit = place.instead_of_import("jax.numpy", "numpy", "np")
        if edit is not None:
            message = "replace `import jax.numpy as np` by `import numpy as np`"
            caveat = "functions outside of kernels that use `np` use NumPy, too"
            yield Fix(message, (edit,), caveat=caveat)
            return
    if here.startswith("pscdsl.stdlib."):
        module, _, function = here.rpartition(".")
        found = place.imported(f"from {module} import {function}", function)
        text = function
    else:
        found = place.numpy() if package == "numpy" else place.psc()
        text = f"{found[0]}.{rest}" if found is not None else ""
    if found is not None:
        yield from place.replace(node, text, needs=found[1], caveat=DIFFERS.get(name, ""))


def not_checked(place: Place[KernelNotChecked]) -> Iterator[Fix]:
    """Leave out the decorator that prevents the check of a kernel."""
    yield from _uncompiled(place, place.finding.decorator)


def _uncompiled(place: Place[Any], name: str) -> Iterator[Fix]:
    """Leave out a function's compilation: a decorator, or a call with it."""
    finding, tree = place.finding, place.tree
    spans = [label.span for label in finding.labels] or [finding.span]
    for node in itertools.chain.from_iterable(map(tree.at, spans)) if name in COMPILERS else ():
        function, span = tree.parent(node), tree.source.span(node)
        if isinstance(function, FunctionStatement) and node in function.decorator_list:
            if not tree.source.lines[span.end_line - 1][span.end_column - 1 :].strip():
                line = Span(span.path, span.line, 1, span.end_line + 1, 1)
                yield Fix(f"leave out `@{tree.text(node)}`", (Edit(line, ""),))
            continue
        match node:
            case ast.Call(func=function, args=[argument]):
                if last_name(function) == name.rpartition(".")[2]:
                    yield from place.replace(node, tree.operand(argument))
            case _:
                pass


def _renamed(place: Place[NoSuchAttribute], node: ast.Attribute, name: str) -> Iterator[Fix]:
    span = place.tree.source.span(node)
    column = span.end_column - len(node.attr)
    if not place.tree.text(node).endswith(node.attr) or column < 1:
        return
    last = Span(span.path, span.end_line, column, span.end_line, span.end_column)
    yield Fix(f"replace `{node.attr}` by `{name}`", (Edit(last, name),))


def unknown_name(place: Place[UnknownName]) -> Iterator[Fix]:
    """Add the usual import, or use the only similar name in scope."""
    node = place.node(ast.Name)
    if node is None or place.finding.unassigned:
        return
    name = node.id
    needed: tuple[str, tuple[Edit, ...]] | None = None
    if name in USUAL:
        needed = place.imported(USUAL[name], name)
    elif name in {each.name for each in dtypes.ALL}:
        needed = place.imported(f"from pscdsl import {name}", name)
    if needed is not None and needed[1]:
        yield Fix(f"add `{needed[1][0].text.strip()}`", needed[1])
        return
    names = _names(place, node)
    if len(names) > MOST_NAMES:
        return
    near = get_close_matches(name, sorted(names), 2, 0.75)
    if len(near) == 1:
        yield from place.replace(node, near[0])


def _names(place: Place[UnknownName], node: ast.Name) -> set[str]:
    """Return the names in scope of a node, including Python's own."""
    found = {each for each in dir(builtins) if each.islower()}
    for statement in place.tree.source.tree.body:
        found.update(targets(statement))
    for each in place.tree.uses.above(node):
        if isinstance(each, FunctionNode):
            found |= place.tree.uses.bound(each)
    return found


def side_effect(place: Place[SideEffect]) -> Iterator[Fix]:
    """Leave out a statement that does nothing but have an effect."""
    call = place.node(ast.Call)
    statement = None if call is None else place.parent(call, ast.Expr)
    if statement is None:
        return
    span, lines = place.tree.source.span(statement), place.tree.source.lines
    block = place.tree.block(statement)
    before = lines[span.line - 1][: span.column - 1].strip()
    after = lines[span.end_line - 1][span.end_column - 1 :].strip()
    message = f"leave out the call of `{place.finding.function}`"
    if len(block) == 1 or before or (after and not after.startswith("#")):
        yield from place.replace(statement, "pass", message=message)
    elif span.end_line < len(lines):
        whole = Span(span.path, span.line, 1, span.end_line + 1, 1)
        if not place.tree.has_comment(span):
            yield Fix(message, (Edit(whole, ""),))


def inner_sizes_differ(place: Place[InnerSizesDiffer]) -> Iterator[Fix]:
    """Reorder the operands to products that fit."""
    node = place.node(ast.BinOp)
    if node is not None and isinstance(node.op, ast.MatMult):
        operands = [place.tree.operand(node.left), place.tree.operand(node.right)]
        for template, _ in place.finding.works:
            text = template.format(*operands)
            inside = isinstance(place.tree.parent(node), ast.BinOp | ast.UnaryOp)
            yield from place.replace(node, f"({text})" if inside else text)


def shapes_do_not_broadcast(place: Place[ShapesDoNotBroadcast]) -> Iterator[Fix]:
    """Retain, add or move an axis of the operands, or use their matrix product."""
    node = place.node(ast.BinOp)
    if node is None or not place.finding.sign:
        return
    nodes, operands = (node.left, node.right), place.finding.operands
    for texts, sign in place.finding.rewrites():
        if sign != place.finding.sign:
            given = [place.tree.operand(each) for each in nodes]
            yield from place.replace(node, f"{given[0]} {sign} {given[1]}")
        for each, text, before in zip(nodes, texts, operands, strict=True):
            if text != before:
                yield from place.replace(each, text, span=place.tree.wrapped(each))


def data_dependent_shape(place: Place[DataDependentShape]) -> Iterator[Fix]:
    """Reduce all elements, with neutral ones in place of those that a mask excludes."""
    node, numpy, text = place.node(ast.Subscript), place.numpy(), place.finding.written
    found = None if node is None or not text else around(place.tree.source, node)
    if found is None or numpy is None:
        return
    text = re.sub(r"\bnp\.", f"{numpy[0]}.", text)
    outer = place.tree.parent(found[0])
    beside = isinstance(outer, ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Subscript)
    text = f"({text})" if beside and " / " in text else text
    yield from place.replace(found[0], text, needs=numpy[1])


def not_callable(place: Place[NotCallable]) -> Iterator[Fix]:
    """Write functions for the values that `psc.cond` is given."""
    call = place.node(ast.Call)
    if call is None or "`psc.cond`" not in place.finding.found or len(call.args) != 3:
        return
    edits: list[Edit] = []
    for argument in call.args[1:]:
        if isinstance(argument, ast.Lambda):
            return
        span = place.tree.source.span(argument)
        edits.append(place.insertion(span.line, span.column, "lambda: "))
    yield Fix("give `psc.cond` functions", tuple(edits))


def bad_arguments(place: Place[BadArguments]) -> Iterator[Fix]:
    """Use the only similar keyword; put brackets around arguments that are one."""
    call = place.node(ast.Call)
    bracketed = re.fullmatch(r"`([^`]+\))`", place.finding.instead)
    if call is not None and bracketed and " as one " in place.finding.problem:
        yield from place.replace(call, bracketed[1])
        return
    wrong = re.search(r"keyword argument '(\w+)'", place.finding.problem)
    meant = re.fullmatch(r"did you mean `(\w+)`\?", place.finding.instead)
    for each in call.keywords if call is not None and wrong and meant else ():
        if wrong is not None and meant is not None and each.arg == wrong[1]:
            span = place.tree.source.span(each)
            end = span.column + len(wrong[1])
            at = Span(span.path, span.line, span.column, span.line, end)
            yield Fix(f"replace `{wrong[1]}` by `{meant[1]}`", (Edit(at, meant[1]),))


def outgrown_update(place: Place[OutgrownUpdate]) -> Iterator[Fix]:
    """Write `z = z + x` in place of `z += x`."""
    node = place.node(ast.AugAssign)
    if node is not None and isinstance(node.target, ast.Name):
        name, sign = node.target.id, place.finding.sign
        yield from place.replace(node, f"{name} = {name} {sign} {place.tree.operand(node.value)}")
