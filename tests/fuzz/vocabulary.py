"""All statements that generated bodies consist of, and how often each is tried."""

from __future__ import annotations

from tests.fuzz import customs, plain_python, python_functions, statements
from tests.fuzz.bodies import Statement

STATEMENTS: tuple[tuple[int, Statement], ...] = (
    *statements.STATEMENTS,
    *plain_python.STATEMENTS,
    *python_functions.STATEMENTS,
    *customs.STATEMENTS,
)
