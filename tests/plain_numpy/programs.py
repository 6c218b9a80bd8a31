"""All programs."""

from __future__ import annotations

from tests.plain_numpy import flows, learning, linear_algebra, other, physics, stencils
from tests.plain_numpy.program import Program

MODULES = (linear_algebra, stencils, flows, learning, physics, other)
PROGRAMS: tuple[Program, ...] = tuple(each for module in MODULES for each in module.PROGRAMS)
