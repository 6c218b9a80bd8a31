"""Reading of call arguments: their arrays and types, and the choices that these make."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pscdsl._src.calls import boundary
from pscdsl._src.calls.called import Called, CallingConvention
from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.xla.binding import register_class
from pscdsl._src.xla.dispatch import BoundExecutable
from pscdsl._src.xla.runtime.executable import Executable
from pscdsl._src.xla.specialisation import Specialisation
from pscdsl.typing.array_types import StaticType, Type, nodes
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import Choice, Spec, StaticSpec, TreeSpec, walk_paths
from pscdsl.typing.unify import match


class Passing:
    """Reads the arguments of something that is called, by its signature."""

    def __init__(self, called: Called[..., Any]) -> None:
        self._called = called

    def arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], constants: Collection[str] = ()
    ) -> tuple[list[Any], dict[str, Type]]:
        """Return the arrays of a call, and the types of its arguments; see `Called.arguments`."""
        called = self._called
        leaves: list[Any] = []
        types: dict[str, Type] = {}
        classes: dict[str, DType] = {}
        values = called.bound(args, kwargs)
        for _ in range(2):  # scalars adapt to arrays, also to those that come later
            known = dict(classes)
            leaves.clear()
            for parameter in called.signature.parameters:
                try:
                    types[parameter.name] = boundary.argument(
                        parameter.spec,
                        values[parameter.name],
                        [] if parameter.name in constants else leaves,
                        register_class,
                        classes,
                        called.record_class,
                    )
                except boundary.NotAnArgument as problem:
                    raise ArgumentError(
                        f"argument `{parameter.name}` of `{called.name}` is {problem}, "
                        f"but {parameter.spec} is declared"
                    ) from None
            if classes == known:
                break
        return leaves, types

    def matched(self, types: Mapping[str, Type]) -> tuple[Choice, dict[str, int]]:
        """Return the choice and the sizes for types of arguments; see `Called.matched`."""
        try:
            fit = match(self._called.signature, types, Assumptions())
        except Failure as failure:
            finding = failure.diagnostics[0]
            parts = (f" ({finding.label()})" if finding.label() else "", finding.advice())
            raise ArgumentError(
                finding.message() + parts[0] + (f"; {parts[1]}" if parts[1] else "")
            ) from None
        sizes: dict[str, int] = {}
        for name, size in fit.sizes.items():
            assert isinstance(size, int)
            sizes[name] = size
        for name, _ in fit.choice.statics:
            sizes.pop(name, None)
        return fit.choice, sizes

    def convention(self, donated: tuple[str, ...], constants: tuple[str, ...]) -> CallingConvention:
        """Return the calling convention of the signature."""
        called = self._called
        parameters = called.signature.parameters
        return CallingConvention(
            called.name,
            tuple([p.name for p in parameters]),
            sum(not p.keyword_only for p in parameters),
            tuple([p.name for p in parameters if isinstance(p.spec, StaticSpec)]),
            self._has_inside(StaticSpec),
            self._has_inside(TreeSpec),
            donated,
            constants,
            called.signature.mesh_axes(),
            all(
                parameter.default is parameter.empty
                and parameter.kind is not parameter.POSITIONAL_ONLY
                for parameter in called.python_signature.parameters.values()
            ),
        )

    def _has_inside(self, kind: type[Spec]) -> bool:
        """Return whether arguments contain a specification of a kind, static ones only inside."""
        return any(
            isinstance(part, kind)
            for parameter in self._called.signature.parameters
            for path, part in walk_paths(parameter.spec, parameter.name)
            if path != parameter.name or kind is not StaticSpec
        )

    def inner_statics(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the static values in the records among the arguments."""
        return tuple(
            part
            for tree in self.arguments(args, kwargs)[1].values()
            for part in nodes(tree)
            if isinstance(part, StaticType)
        )

    def bound_executable(
        self, specialisation: Specialisation, executable: Executable, *, fills: bool
    ) -> BoundExecutable:
        """Bind a compiled program for calls; see `BoundExecutable` for `fills`."""
        constants, tree = specialisation.constants, specialisation.program.result
        assert tree is not None
        boundary.register_result(tree, register_class)
        return BoundExecutable(
            executable,
            lambda args, kwargs: self.arguments(args, kwargs, constants)[0],
            lambda arrays: boundary.result(tree, iter(arrays)),
            specialisation.donate,
            fills,
        )
