"""Sizes that follow from the values of traced arrays: a trace knows the shape of each array."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pscdsl._src.dialects.jax.arrays import ARRANGING, OPERATIONS, Arrays, certain_name
from pscdsl._src.dialects.jax.names import Scope
from pscdsl.typing.codes.shapes import DataDependentShape

_COUNTING = {
    **dict.fromkeys(
        "nonzero flatnonzero argwhere unique unique_values unique_counts unique_all unique_inverse "
        "where union1d intersect1d setdiff1d setxor1d".split(),
        "size",
    ),
    "bincount": "length",
}
"""Functions of `jax.numpy` that count elements, with the argument that gives the size instead."""
_SHAPES = {
    **dict.fromkeys("zeros ones empty full eye identity tri".split(), (0,)),
    "arange": (0, 1, 2),
    "linspace": (2,),
    **dict.fromkeys("reshape broadcast_to tile".split(), (1,)),
}
"""Functions of `jax.numpy`, with the places of arguments that are a shape, or sizes in it."""
_WORDS = frozenset({"shape", "axis"})
_STATIC = "an argument keeps its value if `static_argnames` names it"
_MASKING = "`jnp.where(mask, x, …)` keeps the shape; so do reductions with `where=mask`"
_SLICING = "`jax.lax.dynamic_slice_in_dim` takes a slice of a fixed size"
_BOOLEAN = frozenset(
    f"jax.numpy.{name}"
    for name in (
        "isnan isfinite isinf logical_not logical_and logical_or logical_xor equal not_equal less "
        "less_equal greater greater_equal isclose"
    ).split()
)


def unknown_sizes(
    arrays: Arrays, scope: Scope, node: ast.AST
) -> Iterator[tuple[ast.expr, DataDependentShape]]:
    """Yield the expression whose shape certainly depends on a traced value, with the finding."""
    source = scope.program.source

    def found(whole: ast.expr, value: ast.expr, help_: str) -> tuple[ast.expr, DataDependentShape]:
        by = f"`{source.text_of(value)}`, which is known only at run time"
        text = " ".join(source.text_of(whole).split())
        what = f"`{text}`" if len(text) <= 60 else "this array"
        return whole, DataDependentShape(what=what, by=by, instead=help_)

    match node:
        case ast.Subscript(value=value, slice=index):
            owner = value
            if isinstance(value, ast.Attribute) and value.attr == "at":
                owner = value.value
            if arrays.kind(scope, owner) not in ("array", "parameter"):
                return
            for each in index.elts if isinstance(index, ast.Tuple) else [index]:
                if isinstance(each, ast.Slice):
                    for bound in (each.lower, each.upper, each.step):
                        if bound is not None and _is_traced(arrays, scope, bound):
                            yield found(node, bound, f"{_SLICING}; {_STATIC}")
                            return
                elif _is_mask(arrays, scope, each):
                    yield found(node, each, _MASKING)
                    return
        case ast.Call(func=func, args=args, keywords=words):
            if any(isinstance(each, ast.Starred) for each in args):
                return
            given = {word.arg: word.value for word in words}
            if None in given:
                return
            name = certain_name(scope, func)
            module, _, last = name.rpartition(".")
            if module == "jax.numpy" and last in _COUNTING:
                if _COUNTING[last] in given or (last == "where" and len(args) + len(words) > 1):
                    return
                if args and _is_traced(arrays, scope, args[0]):
                    help_ = f"`{_COUNTING[last]}=` gives the result a fixed size"
                    yield found(node, args[0], help_)
                return
            sizes = list[ast.expr]()
            if module == "jax.numpy":
                sizes += [args[place] for place in _SHAPES.get(last, ()) if place < len(args)]
            elif isinstance(func, ast.Attribute) and func.attr == "reshape":
                sizes += args if arrays.is_array(scope, func.value) else []
            if name in OPERATIONS or name in ARRANGING or sizes:
                sizes += [value for word, value in given.items() if word in _WORDS]
            for size in sizes:
                for each in size.elts if isinstance(size, ast.Tuple | ast.List) else [size]:
                    if _is_traced(arrays, scope, each):
                        yield found(node, each, _STATIC)
                        return
        case _:
            pass


def _is_traced(arrays: Arrays, scope: Scope, node: ast.expr) -> bool:
    return arrays.kind(scope, node) in ("array", "parameter")


def _is_mask(arrays: Arrays, scope: Scope, node: ast.expr) -> bool:
    """Return whether an index is certainly an array of bool whose elements are not known."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            compared = not isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn)
            return compared and any(_is_traced(arrays, scope, each) for each in (left, right))
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return _is_mask(arrays, scope, operand)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
            return _is_mask(arrays, scope, left) and _is_mask(arrays, scope, right)
        case ast.Call(func=func, args=[first, *_]):
            return certain_name(scope, func) in _BOOLEAN and _is_traced(arrays, scope, first)
        case ast.Name(id=name):
            owner = scope.owner_of(name)
            value = None if owner is None or name not in owner.once else owner.values.get(name)
            inside = owner is not None and (
                arrays.traced is not None and owner.is_inside(arrays.traced.scope)
            )
            return (
                inside
                and value is not None
                and not (isinstance(value, ast.Name) and value.id == name)
                and _is_mask(arrays, owner or scope, value)
            )
        case _:
            return False
