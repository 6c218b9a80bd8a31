"""Runs one library function outside the front end: arrays in, arrays out.

`run` builds the program at the sizes of its arguments and interprets it, `run_symbolic` builds it
for symbolic sizes first, `run_compiled` goes through XLA.  Arguments are what a kernel would pass:
NumPy arrays become traced arrays, also inside lists and tuples; everything else stays static.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pscdsl._src.frontend.modules.known import register_all
from pscdsl._src.ir.builder import Program, Value, Weak
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Dim

register_all()


class S(int):
    """A static integer that is a size: `run_symbolic` passes the name of that size instead."""


@dataclass(frozen=True)
class Static:
    """An argument that stays as it is, for instance a NumPy array as a static value."""

    value: Any


MOST = 50
"""How many executables are stored."""
_COMPILED: dict[Hashable, Any] = {}


@dataclass(frozen=True)
class Built:
    """A program, what to run it on, and the structure of its results."""

    function: Function
    sizes: Mapping[str, int]
    operands: tuple[Any, ...]
    tree: Any

    def evaluated(self, *operands: Any) -> Any:
        """The results as the interpreter computes them, of other operands if these are given."""
        return self._filled(evaluate(self.function, self.sizes, operands or self.operands))

    def compiled(self, *operands: Any) -> Any:
        """The results as XLA computes them, of other operands if these are given."""
        return self._filled(self._executable.run(operands or self.operands))

    @cached_property
    def _executable(self) -> Any:
        """Compiled once, for all operands and other calls with the same program."""
        from pscdsl._src.targets.pipeline import lower_module
        from pscdsl._src.xla import compilation
        from pscdsl._src.xla.emit.context import module_text

        module = lower_module(self.function, self.sizes)
        key = module_text(module), vars(compilation)["compile_options"]  # which tests may replace
        if key not in _COMPILED:
            if len(_COMPILED) >= MOST:
                _COMPILED.clear()
            _COMPILED[key] = compilation.compile_module(module)
        return _COMPILED[key]

    def _filled(self, results: Any) -> Any:
        remaining: Iterator[tuple[Any, ArrayType]] = iter(
            [(np.asarray(r), t) for r, t in zip(results, self.function.body.out_types, strict=True)]
        )

        def fill(leaf: object) -> Any:
            if isinstance(leaf, Dim):
                return dims.evaluate(leaf, self.sizes)
            if not isinstance(leaf, Value):
                return leaf
            array, of = next(remaining)
            shape = tuple(dims.evaluate(size, self.sizes) for size in of.shape)
            assert array.shape == shape, f"{array.shape} is not {of} at {dict(self.sizes)}"
            assert array.dtype == to_numpy(of.dtype), f"{array.dtype} is not {of}"
            return array

        return mapped(fill, self.tree)


def build(
    function: str | Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    symbolic: bool = False,
    facts: tuple[Fact, ...] = (),
    bounded: bool = False,
) -> Built:
    """The program that applies a function to arguments.

    With `symbolic`, each distinct size above 1 gets a name, which `bounded` says is no less.
    """
    sizes: dict[int, str] = {}
    if symbolic:
        shapes: list[int] = []
        mapped(lambda x: shapes.extend(_sizes(x)), (args, tuple(kwargs.values())))
        sizes = {size: f"n{size}" for size in shapes if size > 1}
    if bounded:
        facts += tuple(Fact("<=", size, dims.name(of)) for size, of in sizes.items())
    program = Program(Assumptions(facts))
    here = program.current
    params: list[Value] = []
    operands: list[Any] = []

    def size(number: int) -> Any:
        return dims.name(sizes[number]) if number in sizes else number

    def pass_on(x: Any) -> Any:
        if isinstance(x, Static):
            return x.value
        if isinstance(x, S):
            return size(int(x))
        if not isinstance(x, np.ndarray | np.generic):
            return x
        shape = tuple(map(size, x.shape))
        operands.append(np.asarray(x))
        params.append(here.parameter(ArrayType(from_numpy(x.dtype), shape), f"a{len(params)}"))
        return params[-1]

    given = [mapped(pass_on, x) for x in args]
    options = {name: mapped(pass_on, x) for name, x in kwargs.items()}
    if isinstance(function, str):
        meaning = MEANINGS[function]
        assert isinstance(meaning, Meaning), f"{function} is not a function"
        function = meaning
    if isinstance(function, Meaning):
        result = function.apply(here, given, options)
    else:
        result = function(*given, **options)
    tree = mapped(lambda x: x.default() if isinstance(x, Weak) else x, result)
    results: list[Value] = []
    mapped(lambda x: results.append(x) if isinstance(x, Value) else None, tree)
    block, captured = here.finish(params, results)
    assert not captured
    env = {name: number for number, name in sizes.items()}
    built = Function("test", tuple(env), program.facts, block)
    return Built(built, env, tuple(operands), tree)


def run(function: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Apply a function at the sizes of its arguments, by the interpreter."""
    return build(function, args, kwargs).evaluated()


def run_symbolic(function: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The same, built with one size name for each distinct size above 1."""
    return build(function, args, kwargs, symbolic=True).evaluated()


def run_bounded(function: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The same, where each name stands for its size or a larger one."""
    return build(function, args, kwargs, symbolic=True, bounded=True).evaluated()


def run_compiled(function: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Apply a function at the sizes of its arguments, by XLA."""
    return build(function, args, kwargs).compiled()


def _sizes(x: object) -> tuple[int, ...]:
    if isinstance(x, S):
        return (int(x),)
    return x.shape if isinstance(x, np.ndarray) else ()


def mapped(transform: Callable[[Any], Any], tree: Any) -> Any:
    """A structure of the same form with every leaf transformed."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(transform, item) for item in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(mapped(transform, item) for item in tree)
    if isinstance(tree, slice):
        return slice(*(mapped(transform, x) for x in (tree.start, tree.stop, tree.step)))
    return transform(tree)
