"""Candidates: a type for each parameter of a function, in the order of the trials."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from pscdsl._src.discover.calls import UNKNOWN, as_array
from pscdsl._src.discover.fitting import fits
from pscdsl._src.discover.usage import Usage
from pscdsl._src.frontend.annotations import renamed
from pscdsl._src.frontend.values import Applicable
from pscdsl._src.language.writes import functional, writable
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Dim, Factor, Size, apply, as_terms, names, variable
from pscdsl.typing.dtypes import CLASSES, dtype, is_dtype_name
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import (
    MAX_RANK,
    ArraySpec,
    DictSpec,
    DimSpec,
    DTypeClass,
    NoneSpec,
    Parameter,
    RecordSpec,
    RepeatedSpec,
    Signature,
    Spec,
    StaticSpec,
    TupleSpec,
    arrays_of,
    spec_parts,
    with_spec_parts,
)

# Candidates: a type for each parameter of a function, and facts about the sizes in them.
#
# A search begins with a fresh size for each axis. The demands of an elaboration then make sizes
# equal, or become preconditions: a candidate has no further restrictions.


FLOAT, INT, BOOL, COMPLEX = "Float", "Int", "Bool", "Complex"
_MARK = "__"


def array(name: str, *dims: DimSpec) -> ArraySpec:
    """Return an array type with a dtype or a class of dtypes."""
    found = dtype(name) if is_dtype_name(name) else DTypeClass(name, CLASSES[name])
    return ArraySpec(found, dims)


def fresh(parameter: str, axis: int | str) -> Size:
    """Return a size that belongs to one axis of one parameter."""
    return variable(f"{parameter}{_MARK}{axis}")


def owner(size: str) -> str:
    """Return the parameter that a fresh size belongs to; empty for other names."""
    return size.rpartition(_MARK)[0]


def map_arrays(spec: Spec, change: Callable[[ArraySpec], ArraySpec]) -> Spec:
    """Return a type with its arrays replaced; declared records stay as they are."""
    if isinstance(spec, ArraySpec):
        return change(spec)
    if isinstance(spec, RecordSpec | DictSpec):
        return spec
    return with_spec_parts(spec, [map_arrays(part, change) for part in spec_parts(spec)])


@dataclass(frozen=True)
class Candidate:
    """One guess of a signature."""

    specs: tuple[tuple[str, Spec], ...]
    facts: tuple[Fact, ...] = ()
    positions: tuple[int, ...] = ()
    """The index of the alternative for each parameter."""
    cost: int = field(default=0, compare=False)
    """A measure of the demands beyond the first guess, and of the distance from the evidence."""
    stored: frozenset[str] = frozenset()
    """The parameters that are stored into."""

    @property
    def writes(self) -> tuple[str, ...]:
        """The parameters to declare in `writes`: those stored into that are arrays here."""
        return tuple(
            [n for n, spec in self.specs if n in self.stored and writable(Parameter(n, spec))]
        )

    def signature(
        self, name: str, keyword_only: frozenset[str] = frozenset(), result: Spec | None = None
    ) -> Signature:
        """Return the candidate as a signature, with the arrays that it writes after the result."""
        parameters = (Parameter(each, spec, each in keyword_only) for each, spec in self.specs)
        return functional(Signature(name, tuple(parameters), result), self.writes)

    def with_spec(self, parameter: str, spec: Spec, position: int, cost: int) -> Candidate:
        """Another type for one parameter."""
        specs = tuple((n, spec if n == parameter else s) for n, s in self.specs)
        index = [n for n, _ in self.specs].index(parameter)
        positions = (*self.positions[:index], position, *self.positions[index + 1 :])
        return replace(self, specs=specs, positions=positions, cost=self.cost + cost)

    def renamed(self, sizes: Mapping[str, Size]) -> Candidate:
        """Replace names by sizes everywhere."""
        env = dict(sizes)
        one_each = {name: (size,) for name, size in env.items()}
        specs = tuple((name, renamed(spec, one_each)) for name, spec in self.specs)
        facts = (fact.substitute(env) for fact in self.facts)
        kept = tuple(f for f in dict.fromkeys(facts) if f.names() or not f.holds({}))
        return replace(self, specs=specs, facts=kept)

    def requiring(self, fact: Fact) -> Candidate | None:
        """Return the candidate that also meets a demand; None if that is impossible.

        Identifying two names costs nothing: with these ranks there is no other way.
        """
        if not fact.names():
            return None
        if fact.relation == "==":
            for name, found in _solutions(fact, self.statics()):
                size = self.known().simplify(found)
                if _plain(size):
                    cost = 0 if str(size).isidentifier() else 3
                    return replace(self.renamed({name: size}), cost=self.cost + cost)
        if fact in self.facts:
            return None
        bound = fact.explicit_lower_bound()
        weaker = [each for each in self.facts if _is_weaker(each, bound)]
        kept = tuple(each for each in self.facts if each not in weaker)
        cost = 20 if fact.relation == "==" and fact.right != 0 else 2 if bound is None else 1
        cost = 0 if weaker else cost
        return replace(self, facts=(*kept, fact), cost=self.cost + cost)

    def known(self) -> Assumptions:
        """Return the facts, with the numbers that static parameters are at first."""
        env: dict[str, Size] = {}
        for name, spec in self.specs:
            value = spec.samples[0] if isinstance(spec, StaticSpec) and spec.samples else None
            if type(value) is int:
                env[name] = value
        return Assumptions(tuple(fact.substitute(env) for fact in self.facts))

    def statics(self) -> frozenset[str]:
        """Return the static parameters: they are no sizes to be replaced."""
        return frozenset(name for name, spec in self.specs if isinstance(spec, StaticSpec))

    def named(self) -> frozenset[str]:
        """Return the sizes and the static parameters."""
        return self.statics().union(self.sizes())

    def sizes(self) -> Iterator[str]:
        """Yield the names of sizes in order of appearance."""
        found: dict[str, None] = {}
        for _, spec in self.specs:
            for each in arrays_of(spec):
                for dim in each.dims:
                    if isinstance(dim, Dim):
                        found.update(dict.fromkeys(sorted(names(dim))))
        return iter(found)


def _is_weaker(fact: Fact, bound: tuple[str, int] | None) -> bool:
    """Return whether a fact is a lower bound of the bounded name that is not above the bound."""
    own = fact.explicit_lower_bound()
    return own is not None and bound is not None and own[0] == bound[0] and own[1] <= bound[1]


def _solutions(fact: Fact, statics: frozenset[str]) -> Iterator[tuple[str, Size]]:
    """Yield the names that an equation defines, each by the others; later names by earlier ones."""
    gap = _cancel(fact.left - fact.right)
    if isinstance(gap, int):
        return
    for monomial, coefficient in reversed(as_terms(gap)):
        name = str(monomial[0]) if len(monomial) == 1 and monomial[0].kind == "name" else ""
        if name and name not in statics and abs(coefficient) == 1:
            rest = gap - coefficient * variable(name)
            if name not in names(rest):
                yield name, -rest if coefficient == 1 else rest


def _cancel(gap: Size) -> Size:
    """Return a difference without a name that all of its terms are multiples of: no size is 0."""
    if isinstance(gap, int):
        return gap
    terms = as_terms(gap)
    first = terms[0][0]
    for factor in first:
        if factor.kind == "name" and all(factor in monomial for monomial, _ in terms):
            total: Size = 0
            for monomial, coefficient in terms:
                rest = list(monomial)
                rest.remove(factor)
                product: Size = coefficient
                for each in rest:
                    product = product * _factor(each)
                total = total + product
            return _cancel(total)
    return gap


def _factor(factor: Factor) -> Size:
    if factor.kind == "name":
        return variable(factor)
    return apply(factor.kind, list(factor.args))


def _plain(size: Size) -> bool:
    """Return whether an annotation may have a size: not negative, sums and products of names."""
    if isinstance(size, int):
        return size >= 1
    terms = as_terms(size)
    named = all(factor.kind == "name" for monomial, _ in terms for factor in monomial)
    return named and all(coefficient > 0 or not monomial for monomial, coefficient in terms)


def generalised(size: Size, value: int, name: str) -> Size:
    """Return a size with a name in place of a number: of the size itself, or of its divisor."""
    if isinstance(size, int):
        return variable(name) if size == value else size
    total: Size = 0
    for monomial, coefficient in as_terms(size):
        product: Size = coefficient
        for factor in monomial:
            if factor.kind == "name":
                product = product * variable(factor)
            else:
                args = [generalised(argument, value, name) for argument in factor.args]
                product = product * apply(factor.kind, args)
        total = total + product
    return size if total == size else total


def with_coefficient(size: Size, value: int, name: Size) -> Size:
    """Return a size with a factor replaced by another size; itself without the factor."""
    if isinstance(size, int):
        return name if size == value else size
    terms = as_terms(size)
    if all(coefficient != value for _, coefficient in terms):
        return size
    total: Size = 0
    for monomial, coefficient in terms:
        product: Size = name if coefficient == value else coefficient
        for factor in monomial:
            product = product * _factor(factor)
        total = total + product
    return total


# The possible types of a parameter in the order of trials, from all evidence together.


# Annotations and docstrings of parameters, in the usual forms of NumPy code.


HintKind: TypeAlias = Literal[
    "array", "scalar", "int", "bool", "str", "callable", "none", "dict", ""
]

MAX_TEXT = 20_000
"""Longer docstrings are read up to here."""


@dataclass(frozen=True)
class Hint:
    """The evidence from a text about one parameter."""

    kind: HintKind = ""
    dims: tuple[str, ...] | None = None
    """Its shape, where one is given; names that are no identifiers are empty."""
    strings: tuple[str, ...] = ()
    dtype: str = ""
    """`Int` or `Bool` where the text says that the elements are no floating-point numbers."""


_SENTENCE = re.compile(
    r"^\s*(\w+)\s+is (?:an? |the )?(\w+(?: x \w+)*) (?:matrix|vector|array|image)\b"
)
_ENTRY = re.compile(r"^(\s*)\**(\w+(?:\s*,\s*\**\w+)*)\s*:\s*(.+)$")
_GOOGLE = re.compile(r"^\s*(\w+)\s*\(([^)]*(?:\([^)]*\)[^)]*)*)\)\s*:(.*)$")
_SHAPE = re.compile(r"\(([\w\s,.*+-]*)\)")
_CHOICES = re.compile(r"\{([^}]*)\}")
_STRING = re.compile(r"""['"]([^'"]*)['"]""")
_WORDS: tuple[tuple[str, HintKind], ...] = (
    (r"callable|function", "callable"),
    (r"dict\b|mapping", "dict"),
    (r"ndarray|array|matrix|vector|tensor|image|sequence of float|list of float", "array"),
    (r"\bint(eger)?\b", "int"),
    (r"\bbool(ean)?\b", "bool"),
    (r"\b(float|scalar|number|real)\b", "scalar"),
    (r"\bstr(ing)?\b", "str"),
)


def docstring_hints(text: str) -> dict[str, Hint]:
    """Hints by parameter, from a docstring in the style of numpydoc or of Google."""
    found: dict[str, Hint] = {}
    for line in text[:MAX_TEXT].splitlines():
        if len(line) > 300:
            continue
        if sentence := _SENTENCE.match(line):
            words = ", ".join(sentence[2].split(" x "))
            found.setdefault(sentence[1], Hint("array", _dims(words) if "," in words else None))
        elif entry := _ENTRY.match(line):
            for name in entry[2].split(","):
                found.setdefault(name.strip(" *"), hint(entry[3]))
        elif entry := _GOOGLE.match(line):
            told, shape = hint(entry[2]), hint(f"array {entry[3]}")
            if told.kind == "array" and told.dims is None:
                told = replace(told, dims=shape.dims)
            found.setdefault(entry[1], told)
    return found


def hint(text: str) -> Hint:
    """Return the evidence from a description of a type."""
    choices = _CHOICES.search(text)
    strings = tuple(_STRING.findall(choices[1])) if choices else ()
    lowered = text.lower()
    kind: HintKind = "str" if strings else _kind(lowered)
    shape = _SHAPE.search(text)
    dims = _dims(shape[1]) if shape and kind in ("array", "") else None
    if dims is not None:
        kind = "array"
    dtype = ""
    if kind == "array":
        dtype = "Int" if re.search(r"\bint", lowered) else "Bool" if "bool" in lowered else ""
    return Hint(kind, dims, strings, dtype)


def _kind(text: str) -> HintKind:
    for pattern, kind in _WORDS:
        if re.search(pattern, text):
            return kind
    return ""


def _dims(text: str) -> tuple[str, ...] | None:
    """Return the names of sizes in `n, d`; None if it is no shape."""
    words = [word.strip() for word in text.strip().rstrip(",").split(",")]
    if words == [""] or not all(re.fullmatch(r"\w+", word) for word in words) or len(words) > 4:
        return None
    if "," not in text and not words[0].isdigit() and len(words[0]) > 10:
        return None
    return tuple(word if word.isidentifier() else "" for word in words)


_ANNOTATIONS: dict[str, HintKind] = {
    "float": "scalar",
    "floating": "scalar",
    "complex": "scalar",
    "int": "int",
    "bool": "bool",
    "str": "str",
    "Callable": "callable",
    "ndarray": "array",
    "NDArray": "array",
    "ArrayLike": "array",
    "dict": "dict",
    "Dict": "dict",
    "Mapping": "dict",
}


def annotation_hint(node: ast.expr | None) -> Hint:
    """Return the evidence from an annotation that is none of ours."""
    kinds = list(_kinds(node))
    named: list[HintKind] = [kind for kind in kinds if kind != "none"]
    if not named:
        return Hint()
    kind: HintKind = "array" if "array" in named else named[0]
    dtype = "Int" if kind == "array" and "int" in named else ""
    return Hint(kind, dtype="Bool" if kind == "array" and "bool" in named else dtype)


def _kinds(node: ast.expr | None) -> Iterator[HintKind]:
    if isinstance(node, ast.Constant):
        if node.value is None:
            yield "none"
        elif isinstance(node.value, str) and len(node.value) < 200:
            try:
                yield from _kinds(ast.parse(node.value.strip(), mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        name = re.sub(r"^(float|int|complex)(8|16|32|64|128)$", r"\1", name.removesuffix("_"))
        if name in _ANNOTATIONS:
            yield _ANNOTATIONS[name]
    elif isinstance(node, ast.BinOp):
        yield from _kinds(node.left)
        yield from _kinds(node.right)
    elif isinstance(node, ast.Subscript):
        yield from _kinds(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for each in inner:
            yield from _kinds(each)


Kind = Literal["array", "dtype", "static", "none", "tuple", "function", "declared"]

SCALARS = frozenset(
    "alpha beta delta dt dx dy dz eps epsilon f0 factor fc fs gamma h height lam lambda_ length lr "
    "mu offset radius rate ratio scale sigma sr step strike t t0 tau temp temperature threshold "
    "tol tolerance width x0 y0".split()
)
"""Names, or last words of names, that are scalars more often than not."""
MATRICES = frozenset("A B H M P Q R W X Y Z".split())
"""Names that are matrices more often than not."""
NO_DEFAULT = object()
MAX_ITEMS = 8
MAX_VALUES = 3
"""Integers that calls pass with which a static parameter is tried."""


@dataclass(frozen=True)
class Alternative:
    """One thing that a parameter may be."""

    kind: Kind
    spec: Spec
    cost: int


class AnyFunction(Applicable):
    """A function that is given as an argument, whose result resembles its argument."""

    name = "function"

    def apply(self, here: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Return the first argument."""
        del here
        given = (*args, *kwargs.values())
        return given[0] if given else 0.0


FUNCTION = StaticSpec("Callable", (AnyFunction(),))


def alternatives(
    name: str,
    usage: Usage,
    hint: Hint,
    default: Any = NO_DEFAULT,
    position: int = 0,
    passed: Sequence[Any] = (),
) -> tuple[Alternative, ...]:
    """Return the possible types of a parameter, at least one, the most likely first.

    They fit the arguments that are `passed` for it, if any type does. `position` is its index.
    """
    values = [each for each in map(as_array, passed) if each is not UNKNOWN]
    found = [*_alternatives(name, usage, hint, default, position, values)]
    kept: dict[Spec, Alternative] = {}
    for each in found:
        if usage.static and not _is_integer(each.spec):  # it is used as a size
            each = replace(each, cost=each.cost + 6)
        kept.setdefault(each.spec, each)
    given = [each for each in values if each is not None or default is not None]
    none = [each for each in kept.values() if each.kind == "none"]
    fitting = [
        each
        for each in kept.values()
        if each.kind != "none" and all(fits(each.spec, value) for value in given)
    ]
    return (*none, *fitting) if fitting else tuple(kept.values())


def _argument_types(name: str, values: Sequence[Any]) -> Iterator[Alternative]:
    """Yield the types of arguments that are arrays."""
    for value in values:
        if isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
            kind = np.asarray(value).dtype.kind
            dtype = {"b": BOOL, "i": INT, "u": "UInt", "c": COMPLEX}.get(kind, FLOAT)
            dims = tuple(fresh(name, axis) for axis in range(np.ndim(value)))
            if type(value) is int:
                yield Alternative("array", array(FLOAT), 0)
            yield Alternative("array", array(dtype, *dims), 0)


def _is_integer(spec: Spec) -> bool:
    return isinstance(spec, StaticSpec) and spec.kind == "int"


def _alternatives(
    name: str, usage: Usage, hint: Hint, default: Any, position: int, passed: Sequence[Any]
) -> Iterator[Alternative]:
    if usage.called or hint.kind == "callable" or isinstance(default, Applicable):
        yield Alternative("function", FUNCTION, 0)
    if default is None:
        yield Alternative("none", NoneSpec(), 0)
    static = list(_static(usage, hint, default, position, passed))
    if hint.kind in ("int", "bool", "str") or usage.static or usage.strings or usage.flag:
        yield from static
        static = []
    elif default is not NO_DEFAULT and isinstance(default, bool | int | str):
        yield from static
        static = []
    lengths = [literal_length(default), *map(literal_length, passed)]
    items = usage.items or [Usage() for _ in range(max(lengths))]
    if 0 < len(items) <= MAX_ITEMS and not usage.exactly:
        yield from _tuples(name, items)
    yield from _argument_types(name, passed)
    yield from _arrays(name, usage, hint, default)
    if usage.looped:
        yield from _repeated(name)
    if hint.kind not in ("scalar", "array") and not isinstance(default, float | complex):
        for each in static:  # a number of the program first
            yield replace(each, cost=each.cost + 4)


def literal_length(default: Any) -> int:
    """Return the number of items of a default that is a tuple; 0 for anything else."""
    return len(default) if is_tuple(default) else 0


def _static(
    usage: Usage, hint: Hint, default: Any, position: int, passed: Sequence[Any]
) -> Iterator[Alternative]:
    """Yield values known while checking: the default, compared values, or a small number."""
    given = [value for value in passed if isinstance(value, str)]
    integers = [value for value in passed if type(value) is int][:MAX_VALUES]
    strings = list(dict.fromkeys([*given, *usage.strings, *hint.strings]))
    if isinstance(default, str):
        strings = list(dict.fromkeys([default, *strings]))
    if strings:
        yield Alternative("static", StaticSpec("str", tuple(strings)), 0)
    elif isinstance(default, bool):
        yield Alternative("static", StaticSpec("bool", (default, not default)), 0)
    elif isinstance(default, int):
        samples = dict.fromkeys((default, *integers, 0, 1, 2, 3, 4))
        yield Alternative("static", StaticSpec("int", tuple(samples)), 0)
    elif default is None or default is NO_DEFAULT:
        # Parameters get different values, also different from the function's numbers, so that
        # results tell them apart.
        first = 2 + position % 3
        while first in usage.numbers:
            first += 3
        samples = dict.fromkeys((*integers, first, 0, 1, 2, 3, 4))
        integer = Alternative("static", StaticSpec("int", tuple(samples)), 1)
        boolean = Alternative("static", StaticSpec("bool", (False, True)), 1)
        if hint.kind == "bool" or (usage.flag and hint.kind != "int" and not usage.static):
            integer, boolean = boolean, integer
        yield from (integer, boolean)


def _tuples(name: str, items: Sequence[Usage]) -> Iterator[Alternative]:
    """Yield a tuple with an array for each item: as its own usage says, then all of one rank."""
    told = [_item_rank(item) for item in items]
    for cost, ranks in enumerate((told, *([rank] * len(items) for rank in range(3)))):
        specs = tuple(
            array(FLOAT, *(fresh(name, f"{index}_{axis}") for axis in range(rank)))
            for index, rank in enumerate(ranks)
        )
        yield Alternative("tuple", TupleSpec(specs), cost)


def _item_rank(usage: Usage) -> int:
    """Return the likeliest rank of an item: a scalar without further evidence."""
    if usage.exactly is None and usage.least == 0 and not usage.turned and not usage.product:
        return 0
    return _ranks(usage.name, usage, Hint(), NO_DEFAULT)[0]


def _repeated(name: str) -> Iterator[Alternative]:
    for rank in range(3):
        item = array(FLOAT, *(fresh(name, axis) for axis in range(rank)))
        yield Alternative("tuple", RepeatedSpec(item), rank + 1)


def _arrays(name: str, usage: Usage, hint: Hint, default: Any) -> Iterator[Alternative]:
    dtype = BOOL if usage.mask else INT if usage.index else hint.dtype or FLOAT
    others = [each for each in (FLOAT, INT, BOOL, COMPLEX) if each != dtype]
    ranks = _ranks(name, usage, hint, default)
    for cost, rank in enumerate(ranks):
        dims = tuple(fresh(name, axis) for axis in range(rank))
        yield Alternative("array", array(dtype, *dims), cost)
        for other in others:
            yield Alternative("dtype", array(other, *dims), cost + 2)


def _is_weight(name: str) -> bool:
    """Return whether a name belongs to one of several matrices of weights: `w1`, `wq`."""
    return len(name) == 2 and name[0] == "w"


def _ranks(name: str, usage: Usage, hint: Hint, default: Any) -> list[int]:
    """Return the ranks to try, the likeliest first."""
    if usage.exactly is not None:
        return [usage.exactly] if usage.exactly <= MAX_RANK + 1 else []
    usual = [1, 0, 2, 3]
    if usage.index and (len(name) == 1 or name.endswith(("index", "_i"))):
        usual = [0, 1, 2, 3]
    if hint.kind == "scalar" or (default is not None and isinstance(default, int | float)):
        usual = [0, 1, 2]
    elif usage.turned or (usage.product and (name[:1].isupper() or _is_weight(name))):
        usual = [2, 1, 3]
    elif usage.product:
        usual = [1, 2, 3]
    elif (name.rsplit("_", 1)[-1] in SCALARS or name in SCALARS or name.startswith("float")) and (
        hint.kind == ""
    ):
        usual = [0, 1, 2, 3]
    elif name in MATRICES:
        usual = [2, 1, 3, 0]
    if hint.dims is not None:
        usual = [len(hint.dims), *(rank for rank in usual if rank != len(hint.dims))]
    ranks = [rank for rank in usual if rank >= usage.least]
    if not ranks:
        ranks = [usage.least]
    if usage.least >= MAX_RANK and usage.part_of_product:
        ranks = [usage.least, usage.least + 1, usage.least + 2]
    return ranks
