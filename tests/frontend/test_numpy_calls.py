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
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.values import Poison
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy import methods
from pscdsl.typing.diagnostics import Failure
from tests.support.numpy_harness import run
from tests.support.share import some

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
        main = MAIN.lookup("main")
        assert isinstance(main, Closure)
        frame = Frame(session, MAIN.source, MAIN, None, None, main)
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
        except Failure as failure:
            refusal = failure
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
    precise, wanted = mine.astype(complex), theirs.astype(complex)
    rtol = 1e-2 if min(mine.dtype.itemsize, theirs.dtype.itemsize) <= 2 else 1e-5
    if not np.allclose(precise, wanted, rtol=rtol, atol=rtol, equal_nan=True):
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
        *(str(each) for each in np.sctypeDict if each != "bfloat16"),
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
    assert compared({*some(calls, 20, part), *always}) > 60


# Calls that raise.

LIKELY = (
    *("x", "v", "[v, v]", "0", "2", "(1,)", "np.add", "v.dtype", "v[0]", "k", "(3, 2)", "'i,i'"),
    *("x[:, :2]", "b", "1", "[b]", "'numeric'", "lambda q: q"),
)
OPTIONS = (
    *("'nonsense'", "''", "None", "0", "1", "-1", "2", "5", "2.5", "True", "'C'", "'F'", "'left'"),
    *("x", "v", "k", "b", "(0,)", "(0, 1)", "(0, 0)", "[]", "[1.0, 2.0]", "'f4'", "np.float32"),
    *("'sort'", "'stable'", "'clip'", "'linear'", "'same'", "'ortho'", "1j", "-2.5", "[0, 1, 2]"),
)
"""Values for any parameter, most of which NumPy takes for none."""
OWN_KEYWORDS = {("np.bincount", "length")}
"""Keywords that NumPy's functions do not have."""


def signatures() -> dict[str, inspect.Signature]:
    """The parameters that functions and methods of NumPy's have in kernels."""
    found: dict[str, inspect.Signature] = {}
    for name, meaning in sorted(MEANINGS.items()):
        if not isinstance(meaning, Meaning) or not name.startswith("numpy."):
            continue
        parameters = [each for each in meaning.signature.parameters.values() if each.name != "here"]
        short = name.removeprefix("numpy.")
        if not short.startswith("ndarray."):
            found[f"np.{short}"] = inspect.Signature(parameters)
        if short in methods.AS_FUNCTION and parameters[0].kind in (0, 1):
            found[f"x.{short}"] = inspect.Signature(parameters[1:])
    return found


SIGNATURES = signatures()


def call(function: str, given: Mapping[inspect.Parameter, str], by_keyword: bool) -> str:
    """A call with some arguments, the optional ones by keyword or all by position."""
    arguments: list[str] = []
    for parameter, text in given.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments.append(text)
        elif parameter.kind is parameter.KEYWORD_ONLY or by_keyword:
            only = parameter.kind is parameter.POSITIONAL_ONLY
            arguments.append(text if only else f"{parameter.name}={text}")
        else:
            arguments.append(text)
    return f"{function}({', '.join(arguments)})"


def accepted(function: str) -> dict[inspect.Parameter, str] | None:
    """Required arguments with which kernels and NumPy accept a function; None if none are found."""
    required = [
        each
        for each in SIGNATURES[function].parameters.values()
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    for texts in itertools.islice(itertools.product(LIKELY, repeat=len(required)), 400):
        given = dict(zip(required, texts, strict=True))
        text = call(function, given, by_keyword=False)
        if not isinstance(in_numpy(text), Exception) and in_kernel(text) is not None:
            return given
    return None


def calls_of(function: str) -> Iterable[str]:
    """Calls of a function in which one argument is any value, and those without an argument."""
    given = accepted(function)
    if given is None:
        return
    parameters = SIGNATURES[function].parameters.values()
    variadic = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if not variadic:
        yield call(function, given, by_keyword=True)
    for parameter in given:
        rest = {name: text for name, text in given.items() if name is not parameter}
        yield call(function, rest, by_keyword=False)
    for parameter, option in itertools.product(parameters, OPTIONS):
        if parameter.kind is parameter.VAR_KEYWORD or (function, parameter.name) in OWN_KEYWORDS:
            continue
        yield call(function, {**given, parameter: option}, by_keyword=False)
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not variadic:
            keyword = inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY)
            rest = {name: text for name, text in given.items() if name is not parameter}
            yield call(function, {**rest, keyword: option}, by_keyword=False)


BY_DATA = (
    *("np.empty", "np.partition", "np.argpartition", "x.argpartition", "np.choose", "x.choose"),
    *("np.histogram", "np.ravel_multi_index", "np.unravel_index", "np.linalg.lstsq"),
    *("np.linalg.tensorsolve", "np.polymul", "np.quantile", "np.percentile", "np.nanquantile"),
    *("np.nanpercentile", "np.geomspace", "np.linalg.eigh", "np.linalg.eigvalsh"),
    *("np.linalg.cholesky", "np.pad(x, 0, constant_values="),
)
"""Where NumPy raises, or chooses, by the data alone, or differs as documented."""
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_what_numpy_raises_for_is_refused(part: int) -> None:
    tried = list[str]()
    for function in some(list(SIGNATURES)[part::PARTS], 3, part):
        calls = [
            text
            for text in dict.fromkeys(calls_of(function))
            if not text.startswith(BY_DATA) and not text.endswith("sorter=k)")
        ]
        tried += some(calls, 4, function)
    assert compared(tried, dtypes=False) > 20


def parameters_of_numpy(function: str) -> list[inspect.Parameter] | None:
    """The parameters of NumPy's function, if this version tells them."""
    found: Any = np
    for part in function.split(".")[1:]:
        found = getattr(found, part, None)
    kind = inspect.Parameter
    if isinstance(found, np.ufunc):
        keywords = "where casting order dtype subok signature axes axis keepdims".split()
        return [
            *(kind(f"x{number}", kind.POSITIONAL_ONLY) for number in range(found.nin)),
            kind("out", kind.POSITIONAL_OR_KEYWORD, default=None),
            *(kind(name, kind.KEYWORD_ONLY, default=None) for name in keywords),
        ]
    try:
        return [*inspect.signature(found).parameters.values()]
    except (TypeError, ValueError):
        return None


OTHER_SIGNATURES = {"np.arange", "np.ix_", "np.broadcast_arrays", "np.broadcast_shapes"}


def more_than_numpy(function: str) -> str:
    """What a function takes that NumPy's does not: arguments by position, or keywords."""
    theirs = parameters_of_numpy(function)
    if theirs is None or function in OTHER_SIGNATURES:
        return ""
    ours = [*SIGNATURES[function].parameters.values()]
    if any(each.kind in (2, 4) for each in ours):
        return ""
    named = {each.name: each for each in theirs}
    by_place = [each for each in theirs if each.kind in (0, 1)]
    for place, each in enumerate(each for each in ours if each.kind in (0, 1)):
        if place >= len(by_place):
            return f"`{each.name}` by position"
        wanted = by_place[place]
        if each.kind == 1 and (wanted.kind == 0 or wanted.name != each.name):
            return f"`{each.name}` in the place of `{wanted.name}`, or by keyword"
        if wanted.default is wanted.empty and each.default is not each.empty:
            return f"calls without `{wanted.name}`"
    more = any(each.kind is each.VAR_KEYWORD for each in theirs)
    for each in ours:
        if each.kind in (1, 3) and each.name not in named and not more:
            return "" if (function, each.name) in OWN_KEYWORDS else f"the keyword `{each.name}`"
    return ""


def test_signatures_take_no_more_than_those_of_numpy() -> None:
    functions = [name for name in SIGNATURES if name.startswith("np.")]
    wrong = {name: why for name in functions if (why := more_than_numpy(name))}
    assert not wrong
