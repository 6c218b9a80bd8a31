"""Kernels that are read: their definitions, and the programs that are made of these.

A kernel that is found on disk is never read, and this module and the language never loaded.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Generator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from inspect import Signature as PythonSignature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pscdsl._src.analysis.runtime_checks import with_checks
from pscdsl._src.calls.called import admit
from pscdsl._src.calls.choices import chosen
from pscdsl._src.calls.choices import signature as python_signature
from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.modules.live import definition_of, record_class
from pscdsl._src.frontend.modules.traces import Trace
from pscdsl._src.frontend.values import Poisoned
from pscdsl._src.ir.program import Function
from pscdsl._src.language.donation import Donate, donated, reused
from pscdsl._src.language.writes import named
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.support.effects import COMPILED, Kind
from pscdsl._src.transforms.simplify import simplify, with_largest
from pscdsl._src.xla.specialisation import Specialisation, number_defaults, with_constants
from pscdsl.typing.codes.limits import NestedTooDeeply
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity
from pscdsl.typing.signatures import Choice, Signature

if TYPE_CHECKING:
    from pscdsl._src.kernels.kernel import Kernel

Options: TypeAlias = tuple[Any, Any, Any, Any]
"""The arguments of `Definition.with_options`."""


@contextlib.contextmanager
def refusals(definition: Definition | None = None) -> Generator[None]:
    """Raise a CheckError for a `Failure` of the front end, at a definition if it has no place."""
    try:
        yield
    except Failure as failure:
        placed = failure if definition is None else failure.at(definition.head)
        raise CheckError(placed.diagnostics) from None


def load(path: Path | str, name: str) -> Definition:
    """Return the definition of a kernel by a file's source; see `load_kernel`."""
    from pscdsl._src.checker.check import load_definition  # calls need no checker

    with refusals():
        return load_definition(path, name)


class Reading:
    """One kernel as it is read."""

    def __init__(
        self,
        kernel: Kernel[..., Any],
        function: Callable[..., Any] | None,
        options: Options,
        known: Definition | None = None,
    ) -> None:
        self.kernel = kernel
        self.options = options
        self._function = function
        self._definition = known
        self._simplified: dict[tuple[Choice, tuple[str, ...], frozenset[Kind]], Function] = {}

    def with_options(self, kernel: Kernel[..., Any], own: Options, changed: Options) -> Self:
        """Return the reading for a kernel with the options `own`, some of which are `changed`."""
        made = copy(self)
        made.kernel, made.options, made._simplified = kernel, own, {}
        with refusals():
            made._definition = self.definition.with_options(*changed)
        return made

    def inherited(self, kernel: Kernel[..., Any], cls: type[Any]) -> Self:
        """Return the reading of the same method for a class that inherits it."""
        made = copy(self)
        made.kernel, made._simplified = kernel, {}
        with refusals():
            known = self.record_class(cls)
            if known is not None:
                made._definition = self.definition.of_class(known)
        return made

    @property
    def definition(self) -> Definition:
        """The front end's definition of the kernel."""
        if self._definition is None:
            self._definition = self._read()
        return self._definition

    def _read(self) -> Definition:
        function = self._function
        if not isinstance(function, types.FunctionType):
            raise TypeError("psc.kernel takes a function written in Python")
        trace = self.kernel.begin_reading(Trace(self.kernel, asked=True))
        with refusals():
            return definition_of(function, trace).with_options(*self.options)

    @property
    def signature(self) -> Signature:
        """The declared types."""
        with refusals():
            return self.definition.signature

    @cached_property
    def python_signature(self) -> PythonSignature:
        """The parameters as Python would have them."""
        return python_signature(self.definition)

    @cached_property
    def number_defaults(self) -> Mapping[str, Any]:
        """The parameters with a number for their default, which programs take as an array."""
        return number_defaults(self.signature, self.kernel.python_signature)

    def record_class(self, cls: type[Any]) -> RecordClass | None:
        """Return the front end's description of a class; None if it is unknown."""
        return record_class(cls)

    def donated_names(self) -> tuple[str, ...]:
        """Return the parameters whose memory results may take."""
        definition = self.definition
        with refusals(definition):
            return donated(definition.signature, definition.donate)

    def donated(
        self, choice: Choice, donate: Donate | None, constants: Sequence[str]
    ) -> tuple[int, ...]:
        """Return the arrays, by their place in the program, that give their memory to results."""
        definition = self.definition
        with refusals(definition):
            chosen = definition.donate if donate is None else named(donate)
            names = donated(definition.signature, chosen)
        return tuple(reused(self.optimised(choice, constants), names))

    def check(self) -> tuple[Diagnostic, ...]:
        """Return the warnings and notes; a CheckError if there are errors."""
        from pscdsl._src.checker.check import check_definition  # calls need no checker

        diagnostics, status = check_definition(self.definition)
        if status == "error" or any(
            diagnostic.severity is Severity.ERROR for diagnostic in diagnostics
        ):
            raise CheckError(diagnostics)
        return tuple(diagnostics)

    def chosen(self, choices: Mapping[str, Any]) -> Choice:
        """Return the choice that keywords make in the signature."""
        with self._in_bounds():
            return chosen(self.definition, self.signature, choices)

    def instance(self, choice: Choice, *, over_mesh: bool = False) -> Function:
        """Return the typed program for a choice; a CheckError if there is none.

        It is that of one device, or the one for any number of devices.
        """
        try:
            with self._in_bounds():
                if over_mesh:
                    return self.definition.instance_over_mesh(choice)
                return self.definition.instance(choice)
        except Failure as failure:
            raise CheckError(failure.diagnostics) from None
        except Excluded as excluded:
            finding = excluded.finding
            advice = f"; {finding.advice()}" if finding.advice() else ""
            raise ArgumentError(f"{self.kernel.name}: {finding.message()}{advice}") from None
        except Poisoned:
            self.check()
            raise CheckError(()) from None

    @contextlib.contextmanager
    def _in_bounds(self) -> Generator[None]:
        """Raise a CheckError if kernels that call each other are nested too deeply."""
        try:
            yield
        except RecursionError:
            what = f"kernel `{self.kernel.name}`"
            finding = NestedTooDeeply(what=what, span=self.definition.head)
            raise CheckError((finding,)) from None

    def optimised(
        self,
        choice: Choice,
        constants: Sequence[str],
        effects: frozenset[Kind] | None = None,
    ) -> Function:
        """Return the typed program without dead and repeated equations; see `Kernel.optimised`."""
        kinds = COMPILED.kinds if effects is None else effects
        key = choice, tuple(constants), kinds
        simplified = self._simplified.get(key)
        if simplified is None:
            numbers = {name: self.number_defaults[name] for name in constants}
            program = with_constants(self.instance(choice), numbers)
            with self._in_bounds():
                simplified = with_largest(simplify(without_effects(program, kinds)))
                simplified = with_checks(simplified, kinds)
            if self.definition.fast_math:
                simplified = replace(simplified, fast_math=True)
            self._simplified[key] = simplified
        return simplified

    def specialisation(
        self,
        choice: Choice,
        sizes: Mapping[str, int],
        constants: tuple[str, ...],
        donate: Donate | None,
        effects: frozenset[Kind] | None = None,
    ) -> Specialisation:
        """Return the specialisation at admitted sizes, with some parameters constant."""
        kernel = self.kernel
        program = self.optimised(choice, constants, effects)
        admit(kernel.name, program.dims, program.facts, sizes)
        places = self.donated(choice, donate, constants)
        could_be = tuple(self.number_defaults)
        return Specialisation(program, sizes, choice, places, constants, could_be, kernel.device)
