"""`jvp`, `vjp` and `linearize`, called from Python: derivatives at a point along directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from pscdsl._src.calls import boundary
from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.frontend.modules.live import record_class
from pscdsl._src.frontend.transformations import derivatives
from pscdsl._src.frontend.transformations.derivatives import LinearFunction, tangent_tree
from pscdsl._src.frontend.transformations.derived import elaborate
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Function
from pscdsl._src.kernels.captured_state import Watch
from pscdsl._src.kernels.executables import Executables
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.kernels.transformations import as_kernel
from pscdsl._src.support.tracebacks import public
from pscdsl._src.transforms.simplify import simplify
from pscdsl._src.xla.binding import register_class
from pscdsl._src.xla.runtime.devices import prepare
from pscdsl._src.xla.specialisation import Specialisation
from pscdsl.typing.array_types import Type, leaves, paths, substitute_tree
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.signatures import Choice
from pscdsl.typing.unify import structure_differences


class CompiledBySizes:
    """A typed program that is compiled for each of the sizes that it is run at."""

    def __init__(self, function: Function) -> None:
        self.function = simplify(function)
        self._executables = Executables()

    def __call__(self, sizes: Mapping[str, int], arrays: Sequence[Any]) -> Any:
        """Run on arrays, one for each leaf of the parameters; the result as a tree."""
        found = self._executables.get(Specialisation(self.function, sizes))
        tree = self.function.result
        assert tree is not None
        return boundary.result(tree, iter(found.run(arrays)))


class KernelPoint:
    """A kernel at given arguments: the choice, the sizes, the arrays."""

    def __init__(self, kernel: Kernel[..., Any], args: Sequence[Any]) -> None:
        prepare()
        self.kernel = kernel
        self.arrays, types = kernel.arguments(args, {})
        self.choice, self.sizes = kernel.matched(types)

    def at_sizes(self, tree: Type) -> Type:
        """Return a type with the sizes of this call."""
        return substitute_tree(tree, dict(self.sizes))


_PROGRAMS: WeakKeyDictionary[Kernel[..., Any], dict[tuple[Any, ...], Any]] = WeakKeyDictionary()
"""The programs made of each kernel, and their captured values."""


def _remembered(kernel: Kernel[..., Any], key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    programs = _PROGRAMS.setdefault(kernel, {})
    traces = kernel.traces()
    made, then, watch = programs.get(key, (None, (), None))
    if watch is None or then != traces:  # which are others where the kernel was read again
        try:
            made = make()
        except Failure as failure:
            raise CheckError(failure.diagnostics) from None
        traces = kernel.traces()
        watch = Watch(traces)
        programs[key] = made, traces, watch
    watch.require_same(lambda: kernel.name)
    return made


def directions(name: str, what: str, given: Any, wanted: Type) -> list[Any]:
    """Return the arrays of tangents or cotangents, checked against the type that they must have."""
    found: list[Any] = []
    try:
        tree = boundary.argument(
            None, given, found, register_class, {}, lambda cls, _: record_class(cls)
        )
    except boundary.NotAnArgument as problem:
        raise ArgumentError(f"{what} of `{name}` has {problem}") from None
    for each in structure_differences(tree, wanted):
        place = f" at `{each.path}`" if each.path else ""
        raise ArgumentError(f"{what} of `{name}`{place} is {each.found}, not {each.wanted}")
    result: list[Any] = []
    own = leaves(tree)
    for value, have, (path, type_) in zip(found, own, paths(wanted), strict=True):
        if isinstance(value, bool | int | float | complex) and not type_.shape:
            result.append(np.asarray(value, to_numpy(type_.dtype)))
        elif have != type_:
            place = f" at `{path}`" if path else ""
            raise ArgumentError(f"{what} of `{name}`{place} is {have}, not {type_}")
        else:
            result.append(value)
    return result


@public
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Compute the value of `fun` and its derivative along tangents (forward mode).

    Args:
        fun: A kernel or typed function.
        primals: A tuple of arguments.
        tangents: A tuple with the structure, shapes and dtypes of `primals`; None for leaves that
            are not floating point or complex.
        has_aux: Whether `fun` returns `(value, aux)`.

    Returns:
        `(value, tangent)`, or `(value, tangent, aux)`.

    Examples:
        >>> def area(width: f64, height: f64) -> f64:
        ...     return width * height
        >>> psc.jvp(area, (2.0, 5.0), (0.0, 1.0))
        (pscdsl.Array(10., dtype=float64), pscdsl.Array(2., dtype=float64))
    """
    kernel = as_kernel(fun, "jvp")
    point = KernelPoint(kernel, primals)

    def make() -> CompiledBySizes:
        declared = kernel.definition.instance(point.choice).parameters[:count]
        extra = [(f"d_{name}", tangent_tree(tree)) for name, tree in declared]
        function = elaborate(
            kernel.definition,
            point.choice,
            f"jvp({kernel.name})",
            extra,
            lambda here, args, more: derivatives.jvp_(
                here, kernel.definition, args[:count], more, has_aux
            ),
        )
        return CompiledBySizes(function)

    count = len(primals)
    if count != len(tangents):
        raise ArgumentError(f"psc.jvp: {count} primals, but {len(tangents)} tangents")
    program: CompiledBySizes = _remembered(kernel, ("jvp", point.choice, has_aux, count), make)
    given: list[Any] = []
    trees = [tree for _, tree in program.function.parameters[-count:]] if count else []
    for number, (each, tree) in enumerate(zip(tangents, trees, strict=True)):
        what = f"tangent {number}"
        given.extend(directions(f"psc.jvp({kernel.name})", what, each, point.at_sizes(tree)))
    return program(point.sizes, [*point.arrays, *given])


class LinearMap:
    """The derivative of a kernel at a point: maps tangents to tangents, or cotangents back."""

    def __init__(
        self,
        name: str,
        program: CompiledBySizes,
        saved: Sequence[Any],
        sizes: Mapping[str, int],
        wanted: Type,
    ) -> None:
        self.name = name
        self._program = program
        self._saved = list(saved)
        self._sizes = dict(sizes)
        self._wanted = wanted
        self._backward = not name.startswith("psc.linearize")

    def __call__(self, *args: Any) -> Any:
        """Apply it: that of `linearize` to a tangent for each argument, others to one cotangent."""
        if self._backward and len(args) != 1:
            raise ArgumentError(f"{self.name} takes one cotangent, not {len(args)}")
        given = args[0] if self._backward else tuple(args)
        what = "the cotangent" if self._backward else "the tangents"
        arrays = directions(self.name, what, given, self._wanted)
        return self._program(self._sizes, [*self._saved, *arrays])

    def __repr__(self) -> str:
        return f"<derivative {self.name}>"


class _Split:
    """A kernel's program in two: the value with residuals, and the map that uses these."""

    def __init__(
        self, kernel: Kernel[..., Any], choice: Choice, name: str, has_aux: bool, count: int
    ) -> None:
        definition = kernel.definition
        make = derivatives.vjp if name == "vjp" else derivatives.linearize_
        made: list[LinearFunction] = []

        def forward(here: Any, args: list[Any], more: list[Any]) -> Any:
            value, linear, *aux = make(here, definition, *args[:count], has_aux=has_aux)
            made.append(linear)
            return (value, *aux), tuple(linear.linear.saved)

        called = f"{name}({kernel.name})"
        self.forward = CompiledBySizes(elaborate(definition, choice, called, (), forward))
        linear = made[-1]
        self.name = linear.name
        self.wanted = linear.wanted()
        self.late = CompiledBySizes(linear.function(self.forward.function, called))


def _split(fun: Callable[..., Any], name: str, primals: Sequence[Any], has_aux: bool) -> Any:
    kernel = as_kernel(fun, name)
    point = KernelPoint(kernel, primals)
    key = (name, point.choice, has_aux, len(primals))
    pair: _Split = _remembered(
        kernel, key, lambda: _Split(kernel, point.choice, name, has_aux, key[-1])
    )
    (value, *aux), saved = pair.forward(point.sizes, point.arrays)
    wanted = point.at_sizes(pair.wanted)
    return (value, LinearMap(pair.name, pair.late, saved, point.sizes, wanted), *aux)


@public
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute the value of `fun`, and a function for its cotangents (reverse mode).

    Returns:
        `(value, pullback)`, or with `has_aux` `(value, pullback, aux)`. The pullback takes a
        cotangent like the value and returns a tuple with a cotangent for each argument. It holds
        the saved intermediate values, so it can be called several times.

    Examples:
        >>> def area(width: f64, height: f64) -> f64:
        ...     return width * height
        >>> value, back = psc.vjp(area, 2.0, 5.0)
        >>> back(1.0)
        (pscdsl.Array(5., dtype=float64), pscdsl.Array(2., dtype=float64))
    """
    return _split(fun, "vjp", primals, has_aux)


@public
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute the value of `fun`, and its derivative at this point as a linear function.

    Returns:
        `(value, derivative)`; the derivative takes a tangent for each argument.

    Examples:
        >>> def area(width: f64, height: f64) -> f64:
        ...     return width * height
        >>> value, tangent = psc.linearize(area, 2.0, 5.0)
        >>> tangent(1.0, 0.0), tangent(0.0, 1.0)
        (pscdsl.Array(5., dtype=float64), pscdsl.Array(2., dtype=float64))
    """
    return _split(fun, "linearize", primals, has_aux)


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], Any]:
    """Return the transpose of a function that is linear in its arguments.

    Args:
        fun: A kernel or typed function. A CheckError is raised if it is not linear.
        primals: Example arguments; only their types count.

    Returns:
        A function of a cotangent of the result. It returns a tuple with one of each argument.

    Examples:
        >>> def differences(x: f64["n"]) -> f64["n-1"]:
        ...     return x[1:] - x[:-1]
        >>> psc.linear_transpose(differences, np.zeros(3))(np.array([1.0, 10.0]))
        (pscdsl.Array([-1., -9., 10.], dtype=float64),)
    """
    kernel = as_kernel(fun, "linear_transpose")
    point = KernelPoint(kernel, primals)
    definition = kernel.definition

    def make() -> CompiledBySizes:
        result = definition.instance(point.choice).result
        assert result is not None
        function = elaborate(
            definition,
            point.choice,
            f"linear_transpose({kernel.name})",
            [("cotangent", tangent_tree(result))],
            lambda here, args, more: derivatives.linear_transpose(
                here, definition, *args[:count]
            ).apply(here, more, {}),
        )
        return CompiledBySizes(function)

    count = len(primals)
    program: CompiledBySizes = _remembered(kernel, ("linear_transpose", point.choice, count), make)
    _, wanted = program.function.parameters[-1]
    name = f"psc.linear_transpose({kernel.name})"
    return LinearMap(name, program, point.arrays, point.sizes, point.at_sizes(wanted))
