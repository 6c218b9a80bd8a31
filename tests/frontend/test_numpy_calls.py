"""Calls of NumPy's functions as kernels write them: where NumPy raises, kernels are refused.

What a kernel answers has NumPy's dtype, shape and values.  What NumPy takes and a kernel refuses is
no fault here.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import ast
import inspect
import itertools
import os
import random
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.values import Poison
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.typing.diagnostics import Failure
from tests.support.numpy_harness import run

MODULE = "import numpy as np\nimport pscdsl as psc\n\ndef main():\n    pass\n"
MAIN = Project().add(Source("calls.py", MODULE), None)
ARRAYS: Mapping[str, Any] = {
    "x": np.array([[1.5, -2.25, 3.0], [0.5, 4.0, -1.0]]),
    "v": np.array([0.25, 1.0, 2.5]),
    "s": np.array([0.5, -1.5, 1.0], np.float32),
    "i": np.array([3, 1, 2], np.int32),
    "k": np.array([3, 1, 2]),
    "u": np.array([3, 1, 2], np.uint8),
    "b": np.array([True, False, True]),
    "z": np.array([1 + 2j, 0.5, -1j]),
}
SHARE = int(os.environ.get("STATIC_SHARE", "10"))
"""Of the calls one in so many is tried here; `make fuzz` tries them all."""


def in_kernel(expression: str) -> Any:
    """What an expression gives in a kernel; None if it is refused."""
    names = sorted(
        {
            node.id
            for node in ast.walk(ast.parse(expression))
            if isinstance(node, ast.Name) and node.id in ARRAYS
        }
    )

    def program(anchor: Any, *values: Any) -> Any:
        session = Session(anchor.builder.program)
        frame = Frame(session, MAIN.source, MAIN, None, None, MAIN.lookup("main"))
        frame.names = dict(zip(names, values, strict=True))
        frame.source = Source("calls.py", expression)
        node = frame.source.tree.body[0]
        assert isinstance(node, ast.Expr)
        value = evaluate(frame, node.value)
        if isinstance(value, Poison):
            raise Failure(*session.findings)
        return value

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run(program, np.zeros(1), *(ARRAYS[name] for name in names))
        except Failure as refusal:
            assert all(each.code != "PSC999" for each in refusal.diagnostics), expression
            return None


def in_numpy(expression: str) -> Any:
    """What NumPy gives for an expression; an exception if it raises one."""
    names = {"np": np, "psc": psc, **{name: each.copy() for name, each in ARRAYS.items()}}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(expression, names)
        except Exception as error:
            return error


def difference(found: Any, wanted: Any, dtypes: bool = True) -> str:
    """Why a kernel's value is not NumPy's; empty if it is."""
    if isinstance(wanted, Exception):
        return f"NumPy raises {type(wanted).__name__}: {wanted}"
    if isinstance(found, tuple | list):
        pairs = zip(found, wanted, strict=True)
        return next(filter(None, (difference(*pair, dtypes) for pair in pairs)), "")
    if not isinstance(found, np.ndarray | int | float | complex):
        return ""  # something that a kernel cannot return
    mine, theirs = np.asarray(found), np.asarray(wanted)
    if mine.shape != theirs.shape:
        return f"{mine.shape} is not {theirs.shape}"
    if dtypes and mine.dtype != theirs.dtype:
        return f"{mine.dtype} is not {theirs.dtype}"
    precise = [each.astype(complex) for each in (mine, theirs)]
    rtol = 1e-2 if mine.dtype.itemsize <= 2 else 1e-5
    if not np.allclose(*precise, rtol=rtol, atol=rtol, equal_nan=True):
        return f"{mine.tolist()} is not {theirs.tolist()}"
    return ""


def compared(expressions: Iterable[str], dtypes: bool = True) -> int:
    """How many expressions kernels answer, of which none differs from NumPy."""
    answered, wrong = 0, list[str]()
    for expression in expressions:
        found = in_kernel(expression)
        if found is not None:
            answered += 1
            why = difference(found, in_numpy(expression), dtypes)
            if why:
                wrong.append(f"{expression}: {why}")
    assert not wrong, "\n".join(wrong)
    return answered


# Texts that stand for dtypes.

OWN = "i8 i16 i32 i64 u8 u16 u32 u64 bf16 f16 f32 f64 c64 c128 Key".split()
TEXTS = sorted(
    {
        *(each for each in np.sctypeDict if isinstance(each, str) and each != "bfloat16"),
        *OWN,
        *(
            f"{order}{char}"
            for order in ("", "<", ">", "=", "|")
            for char in "?bBhHiIlLqQpPefdgFDG"
        ),
        *(
            f"{order}{kind}{size}"
            for order in ("", "<", ">", "=", "|")
            for kind in "biufc"
            for size in (1, 2, 4, 8, 16, 32)
        ),
        *(
            "O",
            "S4",
            "U3",
            "V8",
            "M8[s]",
            "m8",
            "i4,f4",
            "2f4",
            "(2,)f8",
            "Float64",
            "",
            "nonsense",
        ),
    }
)
TAKING_DTYPES = (
    *("np.zeros(3, {})", "np.ones((2, 3), dtype={})", "np.empty(0, {})", "np.full(3, 2, {})"),
    *("np.zeros_like(x, {})", "np.ones_like(v, dtype={})", "np.full_like(v, 2, {})"),
    *("np.empty_like(x[:, :0], dtype={})", "np.array([1, 2], {})", "np.array(v, dtype={})"),
    *("np.asarray(v, {})", "np.asanyarray(v, {})", "np.ascontiguousarray(v, dtype={})"),
    *("np.astype(v, {})", "v.astype({})", "v.astype(dtype={})", "v.view({})", "k.view({})"),
    *("np.arange(3, dtype={})", "np.linspace(0, 2, 3, dtype={})", "np.logspace(0, 1, 3, dtype={})"),
    *("np.geomspace(1, 4, 3, dtype={})", "np.eye(2, dtype={})", "np.identity(2, {})"),
    *("np.tri(2, dtype={})", "np.indices((2, 2), {})", "np.concatenate((v, v), dtype={})"),
    *(
        "np.stack([v, v], dtype={})",
        "np.stack([b, b], dtype={})",
        "np.concatenate([i, i], dtype={})",
    ),
    *("np.sum(x, dtype={})", "x.sum(axis=0, dtype={})", "np.prod(v, dtype={})", "v.prod(dtype={})"),
    *("np.cumsum(v, dtype={})", "v.cumprod(dtype={})", "np.cumulative_sum(v, dtype={})"),
    *("np.nansum(x, dtype={})", "np.nanprod(v, dtype={})", "np.nancumsum(v, dtype={})"),
    *(
        "np.mean(v, dtype={})",
        "v.mean(dtype={})",
        "np.var(v, dtype={}).real",
        "v.std(dtype={}).real",
    ),
    *("np.nanmean(v, dtype={})", "np.nanvar(v, dtype={}).real", "np.nanstd(v, dtype={}).real"),
    *("np.sum(u, dtype={})", "np.mean(i, dtype={})", "np.cov(x, dtype={})", "np.sum(z, dtype={})"),
    *("np.corrcoef(x, dtype={})", "np.trace(x, dtype={})", "x.trace(dtype={})"),
    *("np.linalg.trace(x, dtype={})", "np.add.reduce(v, dtype={})"),
    *("np.multiply.accumulate(v, 0, {})", "np.linalg.trace(z[None] + x, dtype={})"),
    *("np.add(v, v, dtype={})", "np.add(i, 2, dtype={})", "np.subtract(u, i, dtype={})"),
    *("np.multiply(s, 1.5, dtype={})", "np.divide(i, 2, dtype={})", "np.power(i, 2, dtype={})"),
    *(
        "np.sqrt(v, dtype={})",
        "np.exp(i, dtype={})",
        "np.abs(z, dtype={})",
        "np.less(v, s, dtype={})",
    ),
    *("np.isnan(s, dtype={})", "np.maximum(u, 3, dtype={})", "np.matmul(x, v, dtype={})"),
    *("np.logical_and(v, b, dtype={})", "np.divmod(i, 2, dtype={})", "np.floor(s, dtype={})"),
    *("np.bitwise_and(i, u, dtype={})", "np.arctan2(s, 1, dtype={})", "np.conjugate(z, dtype={})"),
    *("np.hypot(i, 3, dtype={})", "np.negative(b, dtype={})", "np.square(u, dtype={})"),
    *("np.heaviside(s, 0.5, dtype={})", "np.modf(s, dtype={})", "np.sign(v, dtype={})"),
    *("np.zeros(2, np.dtype({}))", "np.zeros(2, np.result_type({}, {}))", "v.dtype == {}"),
    *("np.zeros(2, np.promote_types({}, 'f4'))", "np.finfo({}).bits", "np.iinfo({}).max"),
    *("np.issubdtype(v.dtype, {})", "np.issubdtype({}, np.floating)", "k.dtype == {}"),
    *("np.isdtype(v.dtype, {})", "np.isdtype({}, 'numeric')", "np.dtype({}) == np.int64"),
    *("np.where(b, v, 0).astype({})", "v[b].astype({}).max()"),
)
"""Calls that take a dtype, for each way in which a function of a kernel does."""


@pytest.mark.parametrize("part", range(4))
def test_texts_as_dtypes_mean_what_they_mean_in_numpy(part: int) -> None:
    calls = [
        template.replace("{}", repr(text))
        for template, text in itertools.product(TAKING_DTYPES, TEXTS)
    ][part::4]
    always = [each for each in calls if any(f"'{text}'" in each for text in OWN[:9])]
    tried = calls if SHARE == 1 else random.Random(part).sample(calls, len(calls) // SHARE)
    assert compared({*tried, *always}) > 100
