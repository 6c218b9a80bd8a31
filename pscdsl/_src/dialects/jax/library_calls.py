"""Calls of functions of JAX and of libraries beside it."""

from __future__ import annotations

import ast

from pscdsl._src.dialects.jax.consuming import consume
from pscdsl._src.dialects.jax.control import ORDER, controlled, in_order, per_element
from pscdsl._src.dialects.jax.library import (
    ARRANGED,
    CONSTANT_INITIALIZERS,
    DERIVATIVES,
    JOINED,
    KEY_FUNCTIONS,
    LAYERS,
    MAPPED,
    PER_ELEMENT,
    SAME,
    SEEDS,
    TRANSPARENT,
)
from pscdsl._src.dialects.jax.run import Run
from pscdsl._src.dialects.jax.values import Value


def _new_key(run: Run, node: ast.AST) -> Value:
    """Return a new key, or several."""
    value = run.values.fresh(node)
    run.keys.known_keys.add(value)
    return value


def library_call(
    run: Run, name: str, args: list[Value], words: dict[str, Value], node: ast.AST
) -> Value:
    """Return the result of a library's function."""
    values = run.values
    module, _, last = name.rpartition(".")
    if module == "jax.random" and last.islower() | (last == "PRNGKey"):
        return _random(run, last, args, words, node)
    if module == "equinox.nn" and last in LAYERS and "key" in words:
        consume(run, words["key"], node)
        return values.fresh(node)
    if module in ("jax.nn.initializers", "flax.linen.initializers"):
        return values.fresh(node) if last in CONSTANT_INITIALIZERS else values.make("initializer")
    if name in TRANSPARENT:
        return args[0] if args else values.make("library", "pscdsl.itself")
    if name == "pscdsl.itself":
        return args[0] if args else values.fresh(node)
    if name in ("functools.partial", "jax.tree_util.Partial") and args:
        if args[0].kind == "library" and args[0].data in TRANSPARENT:
            return values.make("library", "pscdsl.itself")
        if "**" not in words:
            return values.make("partial", tuple(words), *args, *words.values())
    if name in MAPPED:
        if not args:
            return values.fresh(node)
        axes = words.get("in_axes") or (args[1] if len(args) > 1 else values.constant(0))
        return values.make("mapped", None, args[0], axes)
    if name in PER_ELEMENT and args:
        return per_element(run, args, node)
    if name in DERIVATIVES and args:
        return values.make("derivative", None, args[0])
    if module == "jax.lax" and last in ORDER:
        given = in_order(run, last, args, words)
        if given is not None:
            return controlled(run, last, given, node)
    if name in ("builtins.zip", "builtins.enumerate", "builtins.range") and args:
        return values.make(last, None, *args)
    if name in ("builtins.list", "builtins.tuple", "builtins.iter", "builtins.reversed") and args:
        return (
            args[0]
            if args[0].kind == "tuple" and last in ("list", "tuple")
            else (args[0] if last != "reversed" and args[0].kind != "tuple" else values.fresh(node))
        )
    if name in ("builtins.isinstance", "builtins.len", "builtins.hasattr", "builtins.bool"):
        return values.make("op", name, *args)
    if name in JOINED and args and args[0].kind == "tuple" and all(map(_is_array, args[0].parts)):
        return values.make("joined", last != "concatenate", *args[0].parts)
    if name in SAME and args:
        return args[0] if name == "jax.device_put" or _is_array(args[0]) else values.fresh(node)
    if name in ARRANGED and args and _is_array(args[0]):
        return values.item(args[0], values.fresh(node))
    known = name.startswith(("builtins.", "jax.numpy.", "numpy.", "jax.debug.", "jax.lax."))
    if known and all(each.kind != "function" for each in (*args, *words.values())):
        return values.fresh(node)
    return run.unknown(values.make("library", name), args, words, node)


def _is_array(value: Value) -> bool:
    return value.kind not in ("tuple", "dict", "const")


def _random(
    run: Run, last: str, args: list[Value], words: dict[str, Value], node: ast.AST
) -> Value:
    values = run.values
    if last in SEEDS:
        seed = args[0] if args else words.get("seed", values.fresh(node))
        made = values.make("seed", None, seed)
        run.keys.known_keys.add(made)
        return values.make("made", None, made, values.fresh(node))
    key = args[0] if args else words.get("key")
    if key is None or key.kind == "spread":
        return values.fresh(node)
    if last == "fold_in":
        number = args[1] if len(args) > 1 else words.get("data", values.fresh(node))
        made = values.make("fold", None, key, number)
        run.keys.known_keys.add(made)
        return made
    if last in ("clone", "wrap_key_data"):
        return _new_key(run, node)
    if last in KEY_FUNCTIONS and last != "split":
        return values.fresh(node)
    consume(run, key, node)
    return _new_key(run, node) if last == "split" else values.fresh(node)
