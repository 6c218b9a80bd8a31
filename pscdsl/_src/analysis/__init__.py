"""Analyses of typed programs: costs, ranges of numbers, uses of keys, warnings."""

from pscdsl._src.ir.program import Function


def _shown(function: Function) -> str:
    from pscdsl._src.analysis.show import show  # few programs are printed

    return show(function)


Function.shown = _shown
