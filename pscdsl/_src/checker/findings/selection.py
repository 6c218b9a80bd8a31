"""Which codes are reported, and where."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pscdsl._src.checker.findings.globs import matches
from pscdsl._src.checker.report.kinds import all_codes
from pscdsl._src.frontend.text.cells import split_cell
from pscdsl._src.support.paths import resolved
from pscdsl.typing.codes.limits import KernelNotChecked
from pscdsl.typing.codes.limits_suppressions import UnusedSuppression
from pscdsl.typing.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Layer:
    """One place that says what is reported: the settings, or the command line."""

    select: tuple[str, ...] | None = None
    """Only these; what earlier layers say does not count then."""
    extend: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def decides(self, code: str) -> bool | None:
        """Whether a code is reported; the longer of two prefixes wins, and `ignore` at a tie."""
        chosen = _longest((*(self.select or ()), *self.extend), code)
        left_out = _longest(self.ignore, code)
        if chosen == left_out == 0:
            return None
        return chosen > left_out


@dataclass(frozen=True, slots=True)
class Selection:
    """The layers in order, the later ones on top; and what is left out in some files."""

    layers: tuple[Layer, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns of paths, and the codes that are not reported there."""
    root: str = "."
    """The folder from which the patterns are meant."""
    strict: bool = False
    """Whether kernels that were not checked are reported unless they are left out by name."""

    def includes(self, code: str, path: str) -> bool:
        """Whether findings with this code are reported in this file."""
        chosen = True
        proof = self.strict and code == KernelNotChecked.code
        for layer in self.layers:
            if layer.select is not None and not proof:
                chosen = False
            decided = layer.decides(code)
            chosen = chosen if decided is None else decided
        file = split_cell(path)[0]
        return chosen and not any(
            code.startswith(codes) and matches(pattern, relative(file, self.root))
            for pattern, codes in self.per_file
        )

    def narrowed(self, finding: Diagnostic) -> Diagnostic | None:
        """The finding as it is reported, if it is.

        A suppression of codes that are not reported here is not told to be unused.
        """
        path = finding.span.path
        if not self.includes(finding.code, path):
            return None
        if isinstance(finding, UnusedSuppression) and finding.codes:
            codes = tuple(code for code in finding.codes if self._may_include(code, path))
            if not codes:
                return None
            others = finding.others or len(codes) < len(finding.codes)
            return finding.replaced(codes=codes, others=others)
        return finding

    def _may_include(self, prefix: str, path: str) -> bool:
        """Whether some code that begins so is reported."""
        codes = [code for code in all_codes() if code.startswith(prefix)]
        return any(self.includes(code, path) for code in codes or [prefix])


def relative(path: str, root: str) -> str:
    """A path as patterns see it: from the root, with `/`; absolute if it lies elsewhere."""
    real, base = resolved(path), resolved(root)
    inside = real == base or real.startswith(base.rstrip(os.sep) + os.sep)
    return (os.path.relpath(real, base) if inside else real).replace(os.sep, "/")


def _longest(prefixes: tuple[str, ...], code: str) -> int:
    return max((len(each) for each in prefixes if code.startswith(each)), default=0)
