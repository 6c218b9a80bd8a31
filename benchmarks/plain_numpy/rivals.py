"""The same text compiled by Numba and by jax, and why they refuse it, where they do."""

# pyright: basic

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.plain_numpy.by_hand import BY_HAND
from tests.plain_numpy.acceptance import closure
from tests.plain_numpy.program import Program

MOST = 60
"""Letters of a reason."""


class Refused(Exception):
    """Another compiler does not take a program; the text says why."""


def with_names(program: Program, names: Mapping[str, Any], wrap: Callable[..., Any]) -> Any:
    """The program and what it calls with other meanings of names, each function wrapped."""
    module = sys.modules[program.function.__module__]
    meanings = {**vars(module), **names}
    for name in closure(ast.parse(inspect.getsource(module)), program.name):
        function = meanings[name]
        if isinstance(function, types.FunctionType):
            copied = types.FunctionType(function.__code__, meanings, name, function.__defaults__)
            meanings[name] = wrap(copied)
    return meanings[program.name]


def numba_of(program: Program) -> Callable[..., Any]:
    """The program compiled by Numba when it is called; its refusals are `Refused`."""
    numba: Any = importlib.import_module("numba")
    compiled = with_names(program, {}, numba.njit)

    def call(*arguments: Any) -> Any:
        try:
            return compiled(*arguments)
        except numba.core.errors.NumbaError as error:
            raise Refused(_numba_reason(str(error))) from None

    return call


def jax_of(program: Program, arguments: list[Any]) -> tuple[Callable[..., Any], bool]:
    """The program compiled by jax, and whether it is written by hand for it.

    A function written by hand returns what the program returns, and then what it writes.
    """
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    hand = program.name in BY_HAND
    if program.writes and not hand:
        raise Refused("stores")
    numbers = [i for i, each in enumerate(arguments) if isinstance(each, int)]
    function = (
        BY_HAND[program.name](jax)
        if hand
        else with_names(program, {"np": jax.numpy}, lambda each: each)
    )
    compiled = jax.jit(function, static_argnums=() if hand else numbers)

    def call(*arguments: Any) -> Any:
        try:
            return jax.block_until_ready(compiled(*arguments))
        except (TypeError, IndexError) as error:  # which all refusals of its are
            raise Refused(_jax_reason(error)) from None

    return call, hand


def _jax_reason(error: Exception) -> str:
    said = str(error)
    if "immutable" in said:
        return "stores"
    known = {
        "TracerBoolConversionError": "branches on computed values",
        "NonConcreteBooleanIndexError": "masks",
        "ConcretizationTypeError": "computed sizes",
        "TracerIntegerConversionError": "computed sizes",
        "TracerArrayConversionError": "NumPy's own functions",
    }
    return known.get(type(error).__name__) or _short(said)


def _numba_reason(said: str) -> str:
    """What of Numba's long messages says what it does not take."""
    said = re.sub(r"\x1b\[[0-9;]*m", "", said)
    for pattern in (
        r"Use of unsupported NumPy function '(.*?)'",
        r"No implementation of function Function\(<(?:built-in )?(?:function|ufunc) '?([\w.]+)",
        r"Unknown attribute '(\w+)'",
        r"(Cannot unify .*?) for",
        r"No implementation of function (Function\(.*?\))",
        r"(Cannot assign|Unsupported|unsupported .*)",
    ):
        if found := re.search(pattern, said):
            return _short(found.group(1))
    return _short(said)


def _short(said: str) -> str:
    return " ".join(said.split())[:MOST]


def is_installed(name: str) -> bool:
    """Whether a module is there."""
    return importlib.util.find_spec(name) is not None


def values(results: Any) -> list[Any]:
    """The arrays of what another one returned, as NumPy's."""
    if results is None:
        return []
    if isinstance(results, tuple | list):
        return [leaf for each in results for leaf in values(each)]
    return [np.asarray(results)]
