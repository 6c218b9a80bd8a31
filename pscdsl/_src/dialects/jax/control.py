"""Control flow of JAX: `jax.vmap`, and the functions of `jax.lax` that call functions."""

from __future__ import annotations

import ast

from pscdsl._src.dialects.jax.run import Run
from pscdsl._src.dialects.jax.values import Value, path_of

ORDER = {
    "scan": ("f", "init", "xs"),
    "while_loop": ("cond_fun", "body_fun", "init_val"),
    "fori_loop": ("lower", "upper", "body_fun", "init_val"),
    "map": ("f", "xs"),
    "cond": ("pred", "true_fun", "false_fun", "operand"),
    "switch": ("index", "branches", "operand"),
}
"""The parameters of the functions of `jax.lax`, in order."""


def mapped(
    run: Run, function: Value, args: list[Value], words: dict[str, Value], node: ast.AST
) -> Value:
    """Return the result of a function that is mapped over its arguments' first axes."""
    inner, axes = function.parts
    loop, step = run.values.fresh(node), run.values.fresh(node)

    def axis_at(axes: Value, place: int) -> Value:
        inside = axes.kind == "tuple" and place < len(axes.parts)
        return axes.parts[place] if inside else axes

    def row(value: Value, axis: Value) -> Value:
        if axis.kind == "const" and axis.data is None:
            return value
        if value.kind in ("tuple", "dict"):
            parts = [row(part, axis_at(axis, n)) for n, part in enumerate(value.parts)]
            return run.values.make(value.kind, value.data, *parts)
        if axis.kind == "const" and axis.data == 0:
            return run.values.row(value, loop, step)
        return run.values.fresh(node)

    rows = [row(each, axis_at(axes, n)) for n, each in enumerate(args)]
    zero = run.values.constant(0)
    rest = {name: row(each, zero) for name, each in words.items()}
    run.bodies += 1
    result = _several(run, run.call(inner, rows, rest, node), node)
    run.bodies -= 1
    return result


def _several(run: Run, value: Value, node: ast.AST) -> Value:
    """Return the results of many calls in the place of one."""
    if value.kind == "tuple":
        return run.values.make("tuple", None, *(_several(run, p, node) for p in value.parts))
    made = run.values.fresh(node)
    if path_of(value)[0] in run.keys.known_keys:
        run.keys.known_keys.add(made)
    return made


def per_element(run: Run, args: list[Value], node: ast.AST) -> Value:
    """Call a function for each element of its arguments."""
    function, *iterated = args

    def step(loop: Value) -> None:
        run.call(function, [run.element(x, loop, node) for x in iterated], {}, node)

    run.steps(node, step)
    return run.values.fresh(node)


def in_order(run: Run, last: str, args: list[Value], words: dict[str, Value]) -> list[Value] | None:
    """Return arguments in their order; None if some are not known."""
    if any(each.kind == "spread" for each in args) or "**" in words:
        return None
    names = ORDER.get(last)
    if names is None:
        return None
    found = [*args]
    for name in names[len(args) :]:
        if name not in words:
            break
        found.append(words[name])
    least = 2 if last in ("scan", "map", "switch") else 3
    return found if len(found) >= least else None


def controlled(run: Run, last: str, args: list[Value], node: ast.AST) -> Value:
    """Return the result of control flow."""
    match last:
        case "scan":
            return _scan(run, args, node)
        case "while_loop":
            return _while_loop(run, args, node)
        case "fori_loop":
            return _fori_loop(run, args, node)
        case "cond":
            return _cond(run, args, node)
        case "switch":
            return _switch(run, args, node)
        case _:
            return per_element(run, args[:2], node)


def _scan(run: Run, args: list[Value], node: ast.AST) -> Value:
    function, carry, *more = args
    carried, result = [carry], [run.values.fresh(node)]

    def step(loop: Value) -> None:
        row = run.element(more[0], loop, node) if more else run.values.fresh(node)
        result[0] = run.call(function, [carried[0], row], {}, node)
        carried[0] = run.values.item(result[0], run.values.constant(0))

    run.steps(node, step, surely=True)
    return run.values.make("tuple", None, carried[0], run.values.fresh(node))


def _while_loop(run: Run, args: list[Value], node: ast.AST) -> Value:
    test, function, carry, *_ = args
    carried = [carry]

    def step(loop: Value) -> None:
        run.call(test, [carried[0]], {}, node)
        carried[0] = run.call(function, [carried[0]], {}, node)

    run.steps(node, step, surely=True)
    return carried[0]


def _fori_loop(run: Run, args: list[Value], node: ast.AST) -> Value:
    _, _, function, *rest = args
    carried = [rest[0] if rest else run.values.fresh(node)]

    def step(loop: Value) -> None:
        counter = run.values.fresh(node)
        carried[0] = run.call(function, [counter, carried[0]], {}, node)

    run.steps(node, step, surely=True)
    return carried[0]


def _cond(run: Run, args: list[Value], node: ast.AST) -> Value:
    test, then, other, *operands = args
    if test.kind == "const":
        test = run.values.fresh(node)
    found: list[Value] = []
    for each in (then, other):
        if each.kind not in ("function", "closure", "bound", "partial", "library"):
            return run.unknown(each, operands, {}, node)
    run.branch(
        test,
        lambda: found.append(run.call(then, operands, {}, node)),
        lambda: found.append(run.call(other, operands, {}, node)),
    )
    return run.values.choice(test, *found)


def _switch(run: Run, args: list[Value], node: ast.AST) -> Value:
    _, branches, *operands = args
    if branches.kind != "tuple" or not branches.parts:
        return run.unknown(branches, operands, {}, node)

    def way(rest: tuple[Value, ...]) -> Value:
        if len(rest) == 1:
            return run.call(rest[0], operands, {}, node)
        test = run.values.fresh(node)
        found: list[Value] = []
        run.branch(
            test,
            lambda: found.append(run.call(rest[0], operands, {}, node)),
            lambda: found.append(way(rest[1:])),
        )
        return run.values.choice(test, *found)

    return way(branches.parts)
