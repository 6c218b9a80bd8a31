"""All programs."""

from __future__ import annotations

from tests.plain_numpy import linear_algebra, stencils

PROGRAMS = (*linear_algebra.PROGRAMS, *stencils.PROGRAMS)
