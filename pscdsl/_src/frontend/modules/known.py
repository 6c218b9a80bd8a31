"""The modules that are known without reading them, and the meanings of their names."""

from __future__ import annotations

import builtins
import functools
import importlib
import math
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pscdsl.numpy
import pscdsl.random
import pscdsl.special
from pscdsl._src.frontend import debugging
from pscdsl._src.frontend.combinators import (
    associative_scan,
    cond,
    fori_loop,
    map_,
    map_reduce,
    scan,
    switch,
    while_loop,
)
from pscdsl._src.frontend.interpreter import iterators, piecewise, python_library
from pscdsl._src.frontend.purity import constant
from pscdsl._src.frontend.transformations.derivatives import (
    checkpoint,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp_,
    linear_transpose,
    linearize_,
    stop_gradient,
    value_and_grad,
    vjp,
)
from pscdsl._src.frontend.transformations.on_each import (
    axis_gather,
    axis_index,
    axis_shift,
    axis_size,
    axis_sum,
    on_each,
)
from pscdsl._src.frontend.transformations.rules import custom_linear_solve, custom_root, make_ruled
from pscdsl._src.frontend.transformations.traced import vmap
from pscdsl._src.frontend.trees import flatten, unflatten
from pscdsl._src.frontend.trees import register as register_trees
from pscdsl._src.frontend.values import (
    AnyValue,
    Array,
    External,
    KnownModule,
    Marker,
    StaticFunction,
    describe,
)
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.language.declarations import completed
from pscdsl._src.language.meanings import MEANINGS
from pscdsl._src.primitives.collectives import PlaceAlong
from pscdsl.typing import dtypes
from pscdsl.typing.codes.language import BadArguments, NoSuchAttribute
from pscdsl.typing.codes.limits import NotSupported, RevealedType
from pscdsl.typing.diagnostics import Failure, plainly
from pscdsl.typing.placements import Placement
from pscdsl.typing.signatures import DTypeClass

# The combinators by name, and the few functions that ask the checker something.


def reveal_type(here: Builder, value: AnyValue) -> AnyValue:
    """Report the type of an expression, for tests and for the curious."""
    leaves, tree = flatten(here, value, "the argument of `reveal_type`")
    del leaves
    program = here.program
    program.revealed.append(RevealedType(types=(plainly(str(tree)),), span=program.span))
    return value


SCOPE = Marker("pscdsl.scope(…)")
"""The context that `psc.scope(name)` creates."""


def scope(here: Builder, name: AnyValue) -> Marker:
    """Return the context of `psc.scope(name)`, which names a part of a kernel."""
    del here
    if not isinstance(name, str | External):  # the text of sizes is not known, and not needed
        problem = f"takes a name, and {describe(name)} is none"
        raise Failure(BadArguments(function="psc.scope", problem=problem))
    return SCOPE


def place(here: Builder, x: AnyValue, placement: AnyValue) -> AnyValue:
    """Return the array, cut along axes of the mesh as a text says: `psc.place(x, "n@data d")`."""
    what = "psc.place"
    leaves, tree = flatten(here, x, f"the argument of `{what}`")
    if not isinstance(placement, str):
        problem = f'takes a text such as `"n@data d"`, and {describe(placement)} is none'
        raise Failure(BadArguments(function=what, problem=problem))
    try:
        axes = Placement.parse(placement).axes
    except ValueError as error:
        raise Failure(BadArguments(function=what, problem=str(error))) from None
    here.program.places = True
    placed: list[Array] = []
    for leaf in leaves:
        if leaf.ndim != len(axes):
            problem = f"the placement `{placement}` is not one of {leaf.type}"
            raise Failure(BadArguments(function=what, problem=problem))
        placed.append(PlaceAlong(axes)(leaf) if isinstance(leaf, Value) else leaf)
    return unflatten(tree, iter(placed))


ERRSTATE = Marker("numpy.errstate(…)")
"""The context of `np.errstate(…)`, which changes nothing, as kernels do not warn."""


def errstate(
    here: Builder,
    *,
    call: AnyValue = None,
    all: AnyValue = None,  # noqa: A002
    divide: AnyValue = None,
    over: AnyValue = None,
    under: AnyValue = None,
    invalid: AnyValue = None,
) -> Marker:
    """Return the context of `np.errstate(divide="ignore")`, for silence or warnings only."""
    del here
    _require_no_reaction("numpy.errstate", (all, divide, over, under, invalid))
    if call is not None:
        problem = "takes no `call` in a kernel, which calls nothing back"
        raise Failure(BadArguments(function="numpy.errstate", problem=problem))
    return ERRSTATE


def seterr(
    here: Builder,
    all: AnyValue = None,  # noqa: A002
    divide: AnyValue = None,
    over: AnyValue = None,
    under: AnyValue = None,
    invalid: AnyValue = None,
) -> External:
    """Accept `np.seterr(divide="ignore")`, which changes nothing, as kernels do not warn."""
    del here
    _require_no_reaction("numpy.seterr", (all, divide, over, under, invalid))
    return External("the settings before `np.seterr(…)`")


def _require_no_reaction(function: str, settings: Sequence[AnyValue]) -> None:
    """Refuse settings that ask for more than silence or warnings."""
    for setting in settings:
        if setting is not None and not (isinstance(setting, str) and setting in ("ignore", "warn")):
            problem = f"takes 'ignore' or 'warn' in a kernel, not {describe(setting)}"
            instead = "a kernel raises nothing, and calls nothing back"
            raise Failure(BadArguments(function=function, problem=problem, instead=instead))


CONTEXTS = (SCOPE, ERRSTATE)
"""The contexts that a `with` statement accepts."""


def register() -> None:
    """Give the combinators their names."""
    combinators: dict[str, Callable[..., Any]] = {
        "associative_scan": associative_scan,
        "map_reduce": map_reduce,
        "scan": scan,
        "map": map_,
        "fori_loop": fori_loop,
        "while_loop": while_loop,
        "cond": cond,
        "switch": switch,
        "grad": grad,
        "value_and_grad": value_and_grad,
        "jvp": jvp_,
        "linearize": linearize_,
        "vjp": vjp,
        "linear_transpose": linear_transpose,
        "jacfwd": jacfwd,
        "jacrev": jacrev,
        "hessian": hessian,
        "vmap": vmap,
        "checkpoint": checkpoint,
        "stop_gradient": stop_gradient,
        "place": place,
        "on_each": on_each,
        "axis_sum": axis_sum,
        "axis_gather": axis_gather,
        "axis_shift": axis_shift,
        "axis_index": axis_index,
        "axis_size": axis_size,
        "custom_jvp": make_ruled("custom_jvp"),
        "custom_vjp": make_ruled("custom_vjp"),
        "custom_linear_solve": custom_linear_solve,
        "custom_root": custom_root,
        "constant": constant,
        "reveal_type": reveal_type,
        "scope": scope,
    }
    for name, body in combinators.items():
        qualified = f"pscdsl.{name}"
        MEANINGS[qualified] = StaticFunction(f"psc.{name}", completed(qualified, body))
    MEANINGS["numpy.errstate"] = StaticFunction("numpy.errstate", errstate)
    MEANINGS["numpy.seterr"] = StaticFunction("numpy.seterr", seterr)
    register_trees()
    debugging.register()
    MEANINGS["builtins.reveal_type"] = MEANINGS["typing.reveal_type"] = MEANINGS[
        "pscdsl.reveal_type"
    ]


# Other names, and modules.


def register_all() -> None:
    """Import every module of library functions, so that they are declared."""
    for package in (pscdsl.numpy, pscdsl.random, pscdsl.special):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


KNOWN_MODULES = frozenset(
    {
        "__future__",
        "beartype.typing",
        "collections",
        "collections.abc",
        "dataclasses",
        "functools",
        "itertools",
        "jaxtyping",
        "math",
        "numpy",
        "numpy.fft",
        "numpy.linalg",
        "operator",
        "pscdsl",
        "pscdsl.debug",
        "pscdsl.numpy",
        "pscdsl.random",
        "pscdsl.special",
        "pscdsl.stdlib",
        "pscdsl.tree",
        "pyrsistent",
        "pyrsistent.typing",
        "scipy",
        "scipy.fft",
        "scipy.linalg",
        "scipy.special",
        "typeguard",
        "typing",
        "typing_extensions",
    }
)
LOADING = frozenset("__name__ __file__ __package__ __spec__ __path__ __loader__".split())
"""Names that depend on how a module was loaded."""
_SAME_AS = {"pscdsl.numpy": "numpy", "beartype.typing": "typing", "typing_extensions": "typing"}
_TRANSPARENT = frozenset({"typing", "jaxtyping", "collections.abc", "pyrsistent.typing"})
"""Modules of types: the meaning of each name is the name itself."""
_KNOWN_IN_PARTS = frozenset(
    {
        *("collections", "dataclasses", "functools", "itertools", "math", "operator"),
        *("scipy", "scipy.fft", "scipy.linalg", "scipy.special", "typeguard"),
    }
)
"""Modules with names that have no meaning here."""
PLANNED = frozenset(
    "checkpoint custom_jvp custom_vjp grad hessian jacfwd jacrev jvp "
    "linearize load stop_gradient value_and_grad vjp vmap".split()
)
"""Names that the language will have."""
_MARKERS = frozenset(
    {
        "pscdsl.Record",
        "pscdsl.Static",
        "pscdsl.Array",
        "pscdsl.Tree",
        "pyrsistent.PRecord",
        "pyrsistent.PClass",
        "pyrsistent.PMap",
        "pyrsistent.PVector",
        "numpy.ndarray",
        "numpy.s_",
        "numpy.index_exp",
        "numpy.mgrid",
        "numpy.ogrid",
        "numpy.r_",
        "numpy.c_",
        "builtins.tuple",
        "builtins.float",
        "builtins.int",
        "collections.namedtuple",
    }
)

register_all()
for _dtype in (*dtypes.ALL, dtypes.KEY):
    MEANINGS[f"pscdsl.{_dtype.name}"] = _dtype
for _name, _members in dtypes.CLASSES.items():
    MEANINGS[f"pscdsl.{_name}"] = DTypeClass(_name, _members)
for _constant in ("pi", "e", "inf", "nan", "tau"):
    MEANINGS[f"math.{_constant}"] = getattr(math, _constant)
python_library.register()
iterators.register()
piecewise.register()
register()
MEANINGS["typing.TYPE_CHECKING"] = False
MEANINGS["pscdsl.bool_"] = dtypes.BOOL
MEANINGS["dataclasses.dataclass"] = Marker("dataclasses.dataclass")
MEANINGS["dataclasses.field"] = Marker("dataclasses.field")
for _method in ("property", "staticmethod", "classmethod"):
    MEANINGS[f"builtins.{_method}"] = Marker(f"builtins.{_method}")


def _made_in(module: str, name: str) -> StaticFunction:
    """Return a decorator whose meaning is in a module that depends on this one."""

    def made(here: Builder, function: AnyValue) -> AnyValue:
        value: AnyValue = getattr(importlib.import_module(module), f"make_{name}")(here, function)
        return value

    return StaticFunction(f"pscdsl.{name}", made)


MEANINGS["pscdsl.primitive"] = _made_in("pscdsl._src.extensions.custom", "primitive")
MEANINGS["pscdsl.pure"] = _made_in("pscdsl._src.extensions.functions", "pure")


@functools.cache
def load_all() -> None:
    """Load the modules that give names their meanings and need this one: imports may be lazy."""
    for name in ("annotations", "classes", "interpreter.special_methods", "modules.scope"):
        importlib.import_module(f"pscdsl._src.frontend.{name}")


def known_attribute(module: KnownModule, name: str) -> AnyValue:
    """Return the meaning of a name of a known module; a Failure if there is no such name."""
    load_all()
    qualified = f"{module.name}.{name}"
    if qualified in MEANINGS:
        return MEANINGS[qualified]
    if qualified in KNOWN_MODULES:
        return KnownModule(_SAME_AS.get(qualified, qualified))
    if module.name in _TRANSPARENT or qualified in _MARKERS:
        return Marker(qualified)
    if module.name in _KNOWN_IN_PARTS and not _is_missing(module.name, name):
        return External(qualified, library=True)
    if module.name.split(".")[0] == "numpy":
        return _unknown_numpy(module, name)
    if module.name == "pscdsl" and name in PLANNED:
        raise Failure(NotSupported(what=f"`psc.{name}`"))
    raise Failure(
        NoSuchAttribute(owner=f"module `{module.name}`", attribute=name, known=_names(module))
    )


def _is_missing(module: str, name: str) -> bool:
    """Return whether a module is one of Python's own and has no such name."""
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return False
    return not hasattr(importlib.import_module(module), name)


def _names(module: KnownModule) -> tuple[str, ...]:
    prefix = module.name + "."
    return tuple(name.removeprefix(prefix) for name in MEANINGS if name.startswith(prefix))


def _unknown_numpy(module: KnownModule, name: str) -> External:
    """Return a NumPy name without a meaning here; a Failure if NumPy has no such name either."""
    if hasattr(importlib.import_module(module.name), name):
        return External(f"{module.name}.{name}", library=True)
    owner = f"module `{module.name}`"
    instead = _elsewhere(name) if module.name == "numpy" else ""
    if f"pscdsl.special.{name}" in MEANINGS:
        instead = f"`psc.special.{name}`"
    if instead:
        raise Failure(NoSuchAttribute(owner=owner, attribute=name, instead=instead))
    raise Failure(NoSuchAttribute(owner=owner, attribute=name, known=_names(module)))


_OF_OTHERS: Final = {
    "cat": "`np.concatenate`",
    "clamp": "`np.clip`",
    "cummax": "`np.maximum.accumulate(x)`",
    "cummin": "`np.minimum.accumulate(x)`",
    "relu": "`np.maximum(x, 0)`",
    "rsqrt": "`1 / np.sqrt(x)`",
    "sigmoid": "`psc.special.expit(x)`",
}
"""Functions of other libraries that NumPy lacks."""


def _elsewhere(name: str) -> str:
    """Return the replacement for a function that NumPy has elsewhere, or that others have."""
    for part in ("linalg", "fft"):
        if f"numpy.{part}.{name}" in MEANINGS:
            return f"`np.{part}.{name}`"
    return _OF_OTHERS.get(name, "")


def known_names(module: str) -> list[str]:
    """Return the names that `from module import *` binds."""
    load_all()
    prefix = f"{_SAME_AS.get(module, module)}."
    names = (name.removeprefix(prefix) for name in (*MEANINGS, *_MARKERS) if prefix in name)
    return [name for name in names if "." not in name]


def star_names(module: str) -> Iterable[str]:
    """Return the names that `from module import *` takes from a known module."""
    top = module.partition(".")[0]
    if top != "numpy" and top not in sys.stdlib_module_names:
        return [name for name in known_names(module) if not name.startswith("_")]
    real = importlib.import_module(module)
    public = [name for name in vars(real) if not name.startswith("_")]
    names: Iterable[str] = getattr(real, "__all__", public)
    return names


def known_module(name: str) -> KnownModule | None:
    """Return a module that is known without reading it; None for others."""
    return KnownModule(_SAME_AS.get(name, name)) if name in KNOWN_MODULES else None


def builtin(name: str) -> AnyValue:
    """Return the meaning of a builtin; KeyError if there is none."""
    load_all()
    qualified = f"builtins.{name}"
    if qualified in MEANINGS:
        return MEANINGS[qualified]
    if not hasattr(builtins, name):
        raise KeyError(name)
    if qualified in _MARKERS:
        return Marker(qualified)
    return External(qualified, library=True)
