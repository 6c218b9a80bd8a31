"""Kernels that transformations make of functions, as they are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

from pscdsl._src.calls.errors import CallSite, CheckError
from pscdsl._src.frontend.modules.live import abstract
from pscdsl._src.frontend.modules.rereading import tell
from pscdsl._src.frontend.modules.traces import Trace
from pscdsl._src.frontend.transformations.derived import DerivedDefinition, MadeTransformation
from pscdsl._src.frontend.transformations.traced import Transformed
from pscdsl._src.kernels.reading import Options, Reading
from pscdsl._src.kernels.transformations import as_kernel
from pscdsl.typing.diagnostics import Failure

if TYPE_CHECKING:
    from pscdsl._src.kernels.kernel import Kernel


class DerivedReading(Reading):
    """A kernel that `make` derives from a function, at the call of a transformation at `site`.

    `original` is the reading with other options, if this one only changes options.
    """

    def __init__(
        self,
        kernel: Kernel[..., Any],
        options: Options,
        fun: Callable[..., Any],
        name: str,
        make: Callable[[Any], Transformed],
        site: CallSite | None,
        original: DerivedReading | None,
    ) -> None:
        super().__init__(kernel, None, options)
        self._fun = fun
        self._name = name
        self._make = make
        self._site = site
        self._original = original

    def with_options(self, kernel: Kernel[..., Any], own: Options, changed: Options) -> Self:
        """Return the reading for a kernel with the options `own`, some of which are `changed`."""
        made = super().with_options(kernel, own, changed)
        made._original = self
        return made

    def _read(self) -> DerivedDefinition:
        trace = self._traced()
        if self._original is not None:
            known = cast("DerivedDefinition", self._original.kernel.definition)
            return known.with_options(*self.options)
        base = as_kernel(self._fun, self._name)
        try:
            transformed = self._make(base.definition)
        except Failure as failure:
            raise CheckError(failure.diagnostics) from None
        trace.meet(base, base.trace)
        place = None if self._site is None else self._site.place()
        if place is None:
            return DerivedDefinition(base.definition, transformed)
        name = str(transformed).removeprefix("psc.")
        return DerivedDefinition(
            base.definition, transformed, MadeTransformation(name, *place, place[1])
        )

    @cached_property
    def transformed(self) -> Transformed:
        """The function as its source has it, without types."""
        if self._original is not None:
            return self._original.transformed
        name = getattr(self._fun, "__name__", self._name)
        return self._make(self._traced().given(self._fun, name, abstract))

    def _traced(self) -> Trace:
        """Return the trace of the look-ups when the function is read."""
        kernel = self.kernel
        if kernel.trace is None:
            kernel.trace = Trace(kernel, asked=True)
            tell(kernel)
        return kernel.trace
