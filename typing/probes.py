"""Probing a search space: guesses far above the smallest sizes, made smaller where they hit."""

from __future__ import annotations

from collections.abc import Mapping

from pscdsl.typing.search_space import Exhausted, SearchSpace

_PROBES = (0, 1, 2, 3, 5, 7, 15, 31, 63, 127, 255, 1023, 4095, 65535, 2**20, 2**31)
_MAX_STEPS = 5000
_NEARBY = 64


def probe(space: SearchSpace) -> dict[str, int] | None:
    """Try some large sizes, of one free name at a time and of all at once."""
    space.steps = _MAX_STEPS
    try:
        for raised in (*([name] for name in space.free), space.free):
            for above in _PROBES:
                found = completed(space, dict.fromkeys(raised, above))
                if found is not None:
                    return _shrunk(space, found)
    except Exhausted:
        pass
    return None


def completed(space: SearchSpace, above: Mapping[str, int]) -> dict[str, int] | None:
    """Sizes with free names about so far above their smallest values, if the space has them."""
    env: dict[str, int] = {}
    for position, name in enumerate(space.order):
        if name in space.defined:
            value = space.defined_value(name, env)
        else:
            start = space.floor[name] + above.get(name, 0)
            nearby = range(start, start + _NEARBY)
            value = next((value for value in nearby if space.passes(name, value)), None)
        if value is None:
            return None
        env[name] = value
        if not space.checked(position, env):
            return None
    return env if space.refutes(env) else None


def _shrunk(space: SearchSpace, found: dict[str, int]) -> dict[str, int]:
    """Make sizes smaller, one free name after the other, by halving steps; while steps last."""
    try:
        for name in space.free:
            above = _heights(space, found)
            width = above[name]
            while width > 0:
                lowered = above[name] - width
                smaller = completed(space, {**above, name: lowered}) if lowered >= 0 else None
                if smaller is not None and smaller[name] < found[name]:
                    found = smaller
                    above = _heights(space, found)
                    width = min(width, above[name])
                else:
                    width //= 2
    except Exhausted:
        pass
    return found


def _heights(space: SearchSpace, sizes: Mapping[str, int]) -> dict[str, int]:
    """How far the free names are above their smallest values."""
    return {name: sizes[name] - space.floor[name] for name in space.free}
