"""Constants, dtypes and what is known of dtypes: all of it static."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Final

import ml_dtypes
import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak, may_be_array
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.language.meanings import MEANINGS, Atomic, as_dtype, describe, function
from pscdsl.numpy.calling import as_operand
from pscdsl.typing import dtypes
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.codes.element_types import DtypesDiffer, ScalarDoesNotFit
from pscdsl.typing.codes.language import BadArguments, NoSuchAttribute, NotStatic
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import CLASSES, KEY, DType, Kind
from pscdsl.typing.python_containers import is_constant, is_sequence, is_tuple
from pscdsl.typing.signatures import DTypeClass

_CONSTANTS: Final[dict[str, float | None]] = {
    "pi": math.pi,
    "e": math.e,
    "euler_gamma": 0.5772156649015329,
    "inf": math.inf,
    "nan": math.nan,
    "newaxis": None,
    "True_": True,
    "False_": False,
}

_DTYPES: Final[dict[str, DType]] = {
    "bool": dtypes.BOOL,
    "bool_": dtypes.BOOL,
    "int8": dtypes.I8,
    "byte": dtypes.I8,
    "int16": dtypes.I16,
    "short": dtypes.I16,
    "int32": dtypes.I32,
    "intc": dtypes.I32,
    "int64": dtypes.I64,
    "int_": dtypes.I64,
    "intp": dtypes.I64,
    "long": dtypes.I64,
    "longlong": dtypes.I64,
    "uint8": dtypes.U8,
    "ubyte": dtypes.U8,
    "uint16": dtypes.U16,
    "ushort": dtypes.U16,
    "uint32": dtypes.U32,
    "uintc": dtypes.U32,
    "uint64": dtypes.U64,
    "uint": dtypes.U64,
    "uintp": dtypes.U64,
    "ulong": dtypes.U64,
    "ulonglong": dtypes.U64,
    "float16": dtypes.F16,
    "half": dtypes.F16,
    "float32": dtypes.F32,
    "single": dtypes.F32,
    "float64": dtypes.F64,
    "double": dtypes.F64,
    "complex64": dtypes.C64,
    "csingle": dtypes.C64,
    "complex128": dtypes.C128,
    "cdouble": dtypes.C128,
}

MEANINGS.update((f"numpy.{name}", value) for name, value in (_CONSTANTS | _DTYPES).items())


_CLASSES: Final = {
    "generic": "Shaped",
    "number": "Num",
    "integer": "Integer",
    "signedinteger": "Int",
    "unsignedinteger": "UInt",
    "inexact": "Inexact",
    "floating": "Float",
    "complexfloating": "Complex",
}
MEANINGS.update(
    (f"numpy.{name}", DTypeClass(name, CLASSES[ours])) for name, ours in _CLASSES.items()
)


_FINFO: Any = ml_dtypes.finfo  # it knows bfloat16 as well


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating-point dtype, as Python numbers."""

    dtype: DType
    bits: int
    eps: float
    epsneg: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    smallest_subnormal: float
    resolution: float
    precision: int
    maxexp: int
    minexp: int
    nmant: int

    def lookup_attribute(self, name: str) -> Any:
        """What `np.finfo(…).name` is."""
        return _limit("np.finfo(…)", self, name)


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype, as Python numbers."""

    dtype: DType
    bits: int
    max: int
    min: int

    def lookup_attribute(self, name: str) -> Any:
        """What `np.iinfo(…).name` is."""
        return _limit("np.iinfo(…)", self, name)


@dataclass(frozen=True)
class NumpyInfo(Atomic):
    """What NumPy's own `np.finfo` or `np.iinfo` gave, outside of kernels."""

    info: Any

    def lookup_attribute(self, name: str) -> Any:
        """A limit, as the scalar that NumPy has."""
        called = self.info.__class__.__name__
        known = tuple(
            field.name for field in fields(FloatInfo if called == "finfo" else IntegerInfo)
        )
        if name not in known:
            owner = f"np.{called}(…)"
            raise Failure(NoSuchAttribute(owner=owner, attribute=name, known=known))
        found = getattr(self.info, name)
        return from_numpy(found) if name == "dtype" else found


def _limit(owner: str, info: FloatInfo | IntegerInfo, name: str) -> Any:
    known = tuple(field.name for field in fields(info))
    if name not in known:
        raise Failure(NoSuchAttribute(owner=owner, attribute=name, known=known))
    return getattr(info, name)


@function("numpy.finfo")
def finfo(here: Builder, x: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype; of a complex one, those of its parts."""
    given = _dtype_of(here, x, "numpy.finfo").real
    if not given.is_float:
        problem = f"takes a floating-point dtype, not {describe(given)}"
        raise Failure(BadArguments(function="numpy.finfo", problem=problem))
    return float_info(given)


def float_info(dtype: DType) -> FloatInfo:
    """The limits of a floating-point dtype."""
    found = _FINFO(to_numpy(dtype))
    return FloatInfo(
        dtype=dtype,
        bits=dtype.bits,
        eps=float(found.eps),
        epsneg=float(found.epsneg),
        max=float(found.max),
        min=float(found.min),
        tiny=float(found.tiny),
        smallest_normal=float(found.smallest_normal),
        smallest_subnormal=float(found.smallest_subnormal),
        resolution=float(found.resolution),
        precision=int(found.precision),
        maxexp=int(found.maxexp),
        minexp=int(found.minexp),
        nmant=int(found.nmant),
    )


@function("numpy.iinfo")
def iinfo(here: Builder, type: Any, /) -> IntegerInfo:  # noqa: A002
    """The limits of an integer dtype."""
    given = _dtype_of(here, type, "numpy.iinfo")
    if not given.is_integer:
        problem = f"takes an integer dtype, not {describe(given)}"
        raise Failure(BadArguments(function="numpy.iinfo", problem=problem))
    low, high = given.range
    return IntegerInfo(given, given.bits, high, low)


def _dtype_of(here: Builder, x: Any, name: str) -> DType:
    if isinstance(x, Value | Weak) and x.ndim:
        raise Failure(BadArguments(function=name, problem="takes a dtype, give it `x.dtype`"))
    given = x.dtype if isinstance(x, Value | Weak) else as_dtype(x)
    return as_operand(here, x).dtype if given is None else given


@function("numpy.dtype")
def dtype_(dtype: Any) -> DType:
    """A dtype by any of its names."""
    if dtype is None:
        raise Failure(BadArguments(function="numpy.dtype", problem="takes a dtype"))
    return dtype  # type: ignore[no-any-return]


_OF_NUMBERS: Final[dict[type, Kind]] = {
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    complex: Kind.COMPLEX,
}


@function("numpy.result_type")
def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype in which operands meet; dtypes alone as NumPy has it, arrays in their own."""
    if not arrays_and_dtypes:
        raise Failure(BadArguments(function="numpy.result_type", problem="takes at least one"))
    if all(isinstance(each, DType | str) for each in arrays_and_dtypes):
        return _promoted("numpy.result_type", *arrays_and_dtypes)
    strong: DType | None = None
    kind = Kind.BOOL
    for each in arrays_and_dtypes:
        if isinstance(each, Weak):
            kind = max(kind, each.kind)
        elif isinstance(each, Dim) or each.__class__ in _OF_NUMBERS:
            kind = max(kind, _OF_NUMBERS.get(each.__class__, Kind.INT))
        else:
            own = _dtype_among("numpy.result_type", each)
            if strong is not None and strong is not own:
                raise Failure(DtypesDiffer(left=ArrayType(strong), right=ArrayType(own)))
            strong = own
    if strong is not None and kind > strong.kind:
        raise Failure(ScalarDoesNotFit(scalar=f"a weak {dtypes.PYTHON[kind]}", dtype=strong))
    if strong is not None:
        return strong
    weak = [each for each in arrays_and_dtypes if isinstance(each, Weak)]
    return (weak[0].builder.program.defaults if weak else dtypes.PYTHON)[kind]


@function("numpy.promote_types")
def promote_types(type1: Any, type2: Any, /) -> DType:
    """The dtype that holds what two dtypes hold, as NumPy has it."""
    return _promoted("numpy.promote_types", dtype_(type1), dtype_(type2))


def _dtype_among(name: str, x: Any) -> DType:
    """The dtype of an array, or one that is given."""
    if isinstance(x, Value):
        return x.dtype
    if is_constant(x):
        return from_numpy(x.dtype)
    found = None if is_sequence(x) else as_dtype(x)
    if found is None:
        problem = f"takes arrays, numbers and dtypes, not {describe(x)}"
        raise Failure(BadArguments(function=name, problem=problem))
    return found


def _promoted(name: str, *given: Any) -> DType:
    """What NumPy gives for dtypes; a Failure where it gives none, or one that is none of ours."""
    known = [_dtype_among(name, each) for each in given]
    try:
        if KEY in known:
            raise TypeError
        return from_numpy(np.result_type(*map(to_numpy, known)))
    except TypeError:
        shown = " and ".join(map(str, dict.fromkeys(known)))
        problem = f"finds no dtype for {shown}"
        raise Failure(BadArguments(function=name, problem=problem)) from None


@function("numpy.isscalar")
def isscalar(element: Any) -> bool:
    """Return whether this is a number or an element of an array.

    An argument without axes may be a scalar or an array without axes, which is none: refused.
    """
    if not isinstance(element, Value | Weak):
        return isinstance(element, Dim) or np.isscalar(element)
    if may_be_array(element):
        raise Failure(NotStatic(what="whether this is a scalar of NumPy or an array without axes"))
    return not element.shape


@function("numpy.issubdtype")
def issubdtype(arg1: Any, arg2: Any, /) -> bool:
    """Return whether a dtype is one of a class, or the same one."""
    given = dtype_(arg1)
    if isinstance(arg2, DTypeClass):
        return given in arg2.members
    return given is dtype_(arg2)


_KINDS: Final = {
    "bool": "Bool",
    "signed integer": "Int",
    "unsigned integer": "UInt",
    "integral": "Integer",
    "real floating": "Float",
    "complex floating": "Complex",
    "numeric": "Num",
}


@function("numpy.isdtype")
def isdtype(given: Any, /, kind: Any) -> bool:
    """Return whether a dtype is of a kind: a dtype, a name such as 'integral', or one of several.

    Unlike elsewhere, NumPy takes no text for a dtype here.
    """
    if is_tuple(kind):
        return any(isdtype(given, each) for each in kind)
    if isinstance(given, DType) and isinstance(kind, str) and kind in _KINDS:
        return given in CLASSES[_KINDS[kind]]
    for each in (given, kind):
        if not isinstance(each, DType):
            kinds = ", ".join(map(repr, _KINDS))
            problem = f"takes a dtype and a dtype or one of {kinds}, not {describe(each)}"
            raise Failure(BadArguments(function="numpy.isdtype", problem=problem))
    return given is kind
