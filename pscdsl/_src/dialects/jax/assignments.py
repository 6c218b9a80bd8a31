"""Assignments to names, fields and items."""

from __future__ import annotations

import ast

from pscdsl._src.dialects.jax.run import Run
from pscdsl._src.dialects.jax.values import Value


def assign(run: Run, target: ast.expr, value: Value) -> None:
    """Bind a target."""
    match target:
        case ast.Name(id=name):
            names = run.state.names
            if run.locals and name in run.locals[-1]:
                names = run.locals[-1]
            names[name] = value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            starred = next(
                (n for n, part in enumerate(parts) if isinstance(part, ast.Starred)), None
            )
            for number, part in enumerate(parts):
                if isinstance(part, ast.Starred):
                    rest = run.values.fresh(part)
                    if value.kind == "tuple":
                        end = len(value.parts) - (len(parts) - number - 1)
                        rest = run.values.make("tuple", None, *value.parts[number:end])
                    assign(run, part.value, rest)
                    continue
                late = starred is not None and number > starred
                index = number - len(parts) if late else number
                assign(run, part, run.values.item(value, run.values.constant(index)))
        case ast.Attribute(value=owner, attr=name):
            run.state.fields[(run.evaluate(owner), name)] = value
        case ast.Subscript(value=owner, slice=index):
            _store(run, owner, run.evaluate(index), value)
        case _:
            pass


def _store(run: Run, owner: ast.expr, index: Value, value: Value) -> None:
    old = run.evaluate(owner)
    if isinstance(owner, ast.Name) and old.kind == "dict" and index.kind == "const":
        items = dict(zip(old.data, old.parts, strict=True))
        items[index.data] = value
        assign(run, owner, run.values.make("dict", tuple(items), *items.values()))
    elif isinstance(owner, ast.Name):
        assign(run, owner, run.values.fresh(owner))
    else:
        run.change(old)
