"""Signatures in which sizes are equal because loops and shapes say so, and helpers say of ranks."""

from __future__ import annotations

import textwrap

import pytest

from pscdsl._src.checker.check import check_source
from pscdsl._src.discover.verdicts import discover_source
from pscdsl.typing.diagnostics import Severity

FUNCTIONS = {
    # A counter says that an axis is as long as the one that it goes through.
    "triangular": (
        """
        def f(L, x, b):
            for i in range(x.shape[0]):
                x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
        """,
        'L: Float["n m"], x: Float["m"]',
    ),
    "factors": (
        """
        def f(A):
            for i in range(A.shape[0]):
                for j in range(i):
                    A[i, j] -= A[i, :j] @ A[:j, j]
                    A[i, j] /= A[j, j]
                for j in range(i, A.shape[0]):
                    A[i, j] -= A[i, :i] @ A[:i, j]
        """,
        'A: Float["n n"]',
    ),
    # Parts of two arrays have one shape if the arrays have.
    "stencil": (
        """
        def f(b, u, v):
            b[1:-1, 1:-1] = u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1]
        """,
        'b: Float["n m"], u: Float["n m"], v: Float["n m"]',
    ),
    # What a function that an argument is passed on to says of it.
    "helpers": (
        """
        def inner(z, w):
            return z[:, :, :, None] * w[0, 1]

        def f(z, w):
            return inner(z, w) + 1
        """,
        'z: Float["',
    ),
    # A mask has the shape of what it selects.
    "masks": (
        """
        def f(values, keys):
            return values[keys > 0].sum()
        """,
        'values: Float["n"], keys: Float["n"]',
    ),
    # A matrix that is given in words.
    "words": (
        '''
        def f(pos, scale):
            """Where they are.

            pos is an N x 3 matrix of positions
            """
            return pos[:, 0:1].T - pos[:, 0:1] + scale
        ''',
        'pos: Float["N ',
    ),
    # Indices that are items of a parameter.
    "indices": (
        """
        def f(x, places):
            y = x.copy()
            for i in range(places.shape[0]):
                y[places[i, 0]] += 1.0
            return y
        """,
        'places: Int["',
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_found_and_accepted(name: str) -> None:
    text, wanted = FUNCTIONS[name]
    text = textwrap.dedent(text)
    found = {
        each.name: each for each in discover_source("import numpy as np\n" + text, "a.py").verdicts
    }
    verdict = found["f"]
    assert verdict.status == "psc", verdict.findings
    written = verdict.written
    assert written is not None
    plain = written.signature.replace("*batch ", "")
    assert wanted in plain, written.signature
    body = text.replace("def f(", "def _(", 1).split("def _(")[1].split("\n", 1)[1]
    lines = [*written.imports, "import numpy as np", text.split("def f(")[0], written.definition]
    pasted = "\n".join([*lines, body])
    diagnostics = check_source(pasted, "a.py").diagnostics
    assert not [each for each in diagnostics if each.severity is Severity.ERROR], pasted


def test_no_counter_is_named_by_a_signature() -> None:
    text = """import numpy as np
def f(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += A[i + 1:, i] @ B[i + 1:, j]
            B[i, j] *= alpha
"""
    (verdict,) = discover_source(text, "a.py").verdicts
    assert verdict.written is not None
    assert 'A: Float["n m"], B: Float["n k"]' in verdict.written.signature
    assert not verdict.written.preconditions
