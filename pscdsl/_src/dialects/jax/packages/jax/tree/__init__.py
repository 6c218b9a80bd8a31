"""The names of `jax.tree`."""

import functools

import pscdsl as psc


def leaves(tree, is_leaf=None):
    """Return the leaves of a tree; dicts are in the order of their keys."""
    if is_leaf is not None and is_leaf(tree):
        return [tree]
    if tree is None:
        return []
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part, is_leaf)]
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key], is_leaf)]
    return list(psc.tree.leaves(tree))


def map(f, tree, *rest, is_leaf=None):
    """Return a tree of a function's results for the leaves of trees."""
    if is_leaf is None:
        return psc.tree.map(f, tree, *rest)
    if is_leaf(tree):
        return f(tree, *rest)
    if tree is None:
        return None
    if isinstance(tree, list):
        return [map(f, *parts, is_leaf=is_leaf) for parts in zip(tree, *rest)]
    if isinstance(tree, dict):
        return {
            key: map(f, part, *[each[key] for each in rest], is_leaf=is_leaf)
            for key, part in tree.items()
        }
    if isinstance(tree, tuple):
        return psc.tree.map.with_leaves_in_tuples
    return psc.tree.map(f, tree, *rest)


def reduce(function, tree, *initializer, is_leaf=None):
    """Return the leaves combined, one after the other."""
    return functools.reduce(function, leaves(tree, is_leaf), *initializer)


def all(tree, *, is_leaf=None):
    """Return whether all leaves hold."""
    found = True
    for leaf in leaves(tree, is_leaf):
        found = found and leaf
    return found
