"""Plain NumPy against NumPy: what is accepted has NumPy's results, and leaves what NumPy leaves.

`python -m tests.campaign numpy --programs 10000` tries the programs of as many seeds.  One is wrong
if it has another result than the same text under NumPy, or changes its arguments or the module
there, or shows an error of ours.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import ast
import copy
import signal
import time
import traceback
import warnings
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pscdsl._src.analysis.verify import verify
from pscdsl._src.checker.check import check_source
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType, Type, children
from pscdsl.typing.diagnostics import Failure
from tests.campaign.campaign import Campaign, deep_and_quiet
from tests.campaign.outcomes import Outcome
from tests.fuzz import (
    container_programs,
    counted_programs,
    dtype_programs,
    element_programs,
    numpy_programs,
    numpy_writes,
    reference,
)
from tests.fuzz.laws import compiled
from tests.support.kernels_of import kernels_of

PATH = "numpy_program.py"
SIZES = ((3, 2), (5, 3), (4, 4), (1, 1), (2, 1), (0, 0), (0, 2))
LARGE = 2.0**40
"""Numbers above are no longer exact sums of integers: a program that has some is not compared."""
SECONDS = 15.0
WHOLE = 20
"""One program of so many is checked as a file too, with its warnings and fixes."""


class TooLong(Exception):
    """A program takes longer than it may."""


class Different(Exception):
    """A program is accepted, and NumPy does something else; or an error of ours."""


@dataclass(frozen=True)
class Verdict:
    """What became of a program."""

    kind: str
    """`equal`, `refused`, `different`, `internal error`, `timeout`, `NumPy raises`, …"""
    detail: str = ""

    @property
    def cause(self) -> str:
        """What verdicts of the same kind on smaller programs have in common with it."""
        return self.detail.split(":")[0] if self.kind == "internal error" else ""


PROBLEMS = ("different", "internal error", "timeout")


@contextmanager
def limited(seconds: float) -> Generator[None]:
    """Raise TooLong after some seconds of the processor."""

    def ended(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, ended)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def tried(
    text: str,
    seed: int,
    whole: bool = False,
    xla: bool = False,
    grammar: Grammar | None = None,
) -> Verdict:
    """What becomes of a program."""
    try:
        with limited(SECONDS):
            return examined(text, seed, whole, xla, grammar or ARRAYS)
    except TooLong:
        return Verdict("timeout")
    except reference.Endless:
        return Verdict("Python does not end")
    except Different as different:
        return Verdict("different", str(different))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return Verdict("internal error", f"{type(error).__name__} at {where}: {error}"[:400])


def examined(text: str, seed: int, whole: bool, xla: bool, grammar: Grammar) -> Verdict:
    """The verdict on a program; raises what shows a problem."""
    definition = kernels_of(text, PATH)["main"]
    functions: list[tuple[Function, dict[str, Any]]] = []
    codes: tuple[str, ...] = ()
    try:
        for choice in definition.signature.choices() or ():
            function = definition.instance(choice)
            functions.append((function, {name: static.value for name, static in choice.statics}))
            verify(function)
            if whole:
                definition.warnings(choice)
    except Failure as failure:
        codes = tuple(dict.fromkeys(each.code for each in failure.diagnostics))
        for each in failure.diagnostics:
            if each.code == "PSC999":
                raise RuntimeError(f"PSC999: {each.message()}") from failure
        if not codes:
            raise RuntimeError("refused without a finding") from failure
    if whole:
        check_whole(text, not codes)
    if codes:
        return Verdict("refused", codes[0])
    trial = Trial(text, seed, xla, grammar, definition.signature.writes)
    return first_that_differs(trial.verdict(*each) for each in functions)


def first_that_differs(verdicts: Iterable[Verdict]) -> Verdict:
    """The first verdict that is not `equal`."""
    found = [*verdicts]
    return next((each for each in found if each.kind != "equal"), found[0])


def check_whole(text: str, accepted: bool) -> None:
    """Check a program as a file: it ends, and has an error where it is refused."""
    result = check_source(text, PATH)
    for each in result.diagnostics:
        if each.code == "PSC999":
            raise RuntimeError(f"PSC999: {each.message()}")
    status = next(each.status for each in result.kernels if each.name == "main")
    if accepted != (status == "ok"):
        raise RuntimeError(f"accepted: {accepted}, and checked as a file: {status}")


def arguments(function: Function, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Small integers for the parameters of a function: those of integer arrays are indices."""
    numbers = np.random.default_rng([seed, *sizes.values()])

    def made(of: Type) -> Any:
        if not isinstance(of, ArrayType):
            return tuple(made(each) for _, each in children(of))
        shape = tuple(dims.evaluate(size, sizes) for size in of.shape)
        low, high = (0, 2) if of.dtype.name == "bool" else (-4, 6)
        if of.dtype.name == "i64" and shape:
            low, high = 0, max(shape[0], 1)
        array = numbers.integers(low, high, shape).astype(to_numpy(of.dtype))
        return array if shape else array[()]

    return {name: made(of) for name, of in function.parameters}


@dataclass
class Plain:
    """What Python does with a program and its arguments."""

    results: list[Any]
    changed: str = ""
    """What of the arguments or the module is no longer as it was."""
    raised: str = ""


def plainly(names: dict[str, Any], given: Mapping[str, Any], writes: Collection[str] = ()) -> Plain:
    """The results of a program under NumPy, and what it has changed beside them.

    The arguments that it `writes` are further results.
    """
    arrays = copy.deepcopy(dict(given))
    watched = {key: each for key, each in names.items() if key.isupper()}
    before = {**copy.deepcopy(watched), **copy.deepcopy(arrays)}
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = names["main"](**arrays)
    except TooLong:
        raise reference.Endless from None
    except Exception as error:
        return Plain([], raised=f"{type(error).__name__}: {error}")
    written = [arrays[name] for name in arrays if name in writes]
    results = [np.asarray(each) for each in (*leaves_of(found), *written)]
    now = {**watched, **arrays}
    changed = [
        key for key, each in before.items() if key not in writes and not alike(now[key], each)
    ]
    return Plain(results, ", ".join(changed))


def loaded(text: str, separate: bool = False) -> dict[str, Any]:
    """The names of a program under NumPy; what it stores is copied before if `separate`.

    NumPy promises that what is stored is read before it is overwritten.  NumPy 2.4 breaks that for
    a row that is stored into a column which crosses it.
    """
    if separate:
        text = ast.unparse(Separated().visit(ast.parse(text)))
    names = reference.loaded(text)
    vars(names["psc"])["grad"] = gradient
    names["separated"] = separated
    return names


def separated(value: Any, target: Callable[[], Any]) -> Any:
    """A copy of an array that is stored into an array; anything else as it is."""
    arrays = isinstance(value, np.ndarray) and isinstance(target(), np.ndarray)
    return value.copy() if arrays else value


class Separated(ast.NodeTransformer):
    """Copies arrays before they are stored."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """A store into a part of a thing that no call makes."""
        (target, *more) = node.targets
        if isinstance(target, ast.Subscript) and not more:
            if not any(isinstance(each, ast.Call) for each in ast.walk(target.value)):
                text = f"separated({ast.unparse(node.value)}, lambda: {ast.unparse(target.value)})"
                node.value = ast.parse(text, mode="eval").body
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call of `np.copyto`."""
        if ast.unparse(node.func) == "np.copyto":
            node.args[1] = ast.parse(f"np.array({ast.unparse(node.args[1])})", mode="eval").body
        return node


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a polynomial of degree 2: its differences are exact."""

    def derived(x: Any, *rest: Any) -> Any:
        found = np.zeros_like(x)
        for place in np.ndindex(np.shape(x)):
            step = np.zeros_like(x)
            step[place] = 1
            found[place] = (function(x + step, *rest) - function(x - step, *rest)) / 2
        return found

    return derived


def leaves_of(tree: Any) -> Iterator[Any]:
    """The arrays of a result in the order of the typed program: dicts by their keys."""
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from leaves_of(tree[key])
    elif isinstance(tree, list | tuple):
        for each in tree:
            yield from leaves_of(each)
    else:
        yield from reference.leaves(tree)


def alike(found: Any, wanted: Any) -> bool:
    """Whether two values are equal, and of the same kind of dtype."""
    if isinstance(wanted, dict | list | tuple):
        left, right = list(leaves_of(found)), list(leaves_of(wanted))
        return len(left) == len(right) and all(map(alike, left, right))
    one, two = np.asarray(found), np.asarray(wanted)
    if one.shape == two.shape == () and one.dtype.kind == "f" and two.dtype.kind == "i":
        two = two.astype(one.dtype)  # Python's integer until a float is added to it
    if one.dtype.kind != two.dtype.kind or one.shape != two.shape:
        return False
    return bool(np.array_equal(one, two, equal_nan=one.dtype.kind == "f"))


def unequal(found: Any, wanted: Any, _: Iterable[Any]) -> str:
    """What is wrong with a result that has to be exact, if anything is."""
    if alike(found, wanted):
        return ""
    one, two = np.asarray(found), np.asarray(wanted)
    return f"is {one.dtype} {one.tolist()}, and Python has {two.dtype} {two.tolist()}"


@dataclass(frozen=True)
class Grammar:
    """Programs of some kind, and how they are compared with NumPy."""

    generate: Callable[[int, bool], str]
    """The program of a seed, which may write to what others hold."""
    sizes: Sequence[tuple[int, int]] = SIZES
    """Those of `n` and `m`."""
    arguments: Callable[[Function, Mapping[str, int], int], dict[str, Any]] = arguments
    for_numpy: Callable[[Any], Any] = lambda argument: argument
    """What NumPy is given in the place of an argument."""
    difference: Callable[[Any, Any, Iterable[Any]], str] = unequal
    """What is wrong with a result beside NumPy's, for some arguments; empty if nothing is."""


ARRAYS = Grammar(numpy_programs.generate)


@dataclass(frozen=True)
class Trial:
    """A program that is accepted, and compared with Python."""

    text: str
    seed: int
    xla: bool
    grammar: Grammar
    writes: Collection[str]
    """The parameters that it writes to."""

    def verdict(self, function: Function, statics: Mapping[str, Any]) -> Verdict:
        """Compare a choice of the program with Python at all sizes that it admits."""
        runs, kinds = 0, Counter[str]()
        simplified = simplify(function)
        verify(simplified)
        for n, m in self.grammar.sizes:
            sizes = {name: size for name, size in (("n", n), ("m", m)) if name in function.dims}
            if not function.facts.admits(sizes):
                continue
            given = self.grammar.arguments(function, sizes, self.seed)
            operands = [np.asarray(each) for each in leaves_of(list(given.values()))]
            with np.errstate(all="ignore"):
                found = evaluate(function, sizes, operands)
            where = f"n={n}, m={m}"
            kind = self.judged_twice(given, statics, found, where)
            kinds[kind] += 1
            runs += kind == "equal"
            if self.xla and kind == "equal" and runs == 1:
                made = compiled(simplified, sizes, operands)
                self.judged_twice(given, statics, made, f"{where}, compiled by XLA")
        if runs:
            return Verdict("equal")
        return Verdict(kinds.most_common(1)[0][0] if kinds else "no size")

    def judged_twice(
        self,
        given: Mapping[str, Any],
        statics: Mapping[str, Any],
        found: Sequence[Any],
        where: str,
    ) -> str:
        """Compare with two calls of one module: a default or a module may remember the first."""
        arguments = {name: self.grammar.for_numpy(each) for name, each in given.items()}

        def calls(names: dict[str, Any]) -> str:
            kinds: list[str] = []
            for turn in ("first", "second"):
                plain = plainly(names, {**arguments, **statics}, self.writes)
                kinds.append(self.judged(plain, found, f"the {turn} call at {where}", given))
            return next((kind for kind in kinds if kind != "equal"), "equal")

        try:
            return calls(loaded(self.text))
        except Different:
            calls(loaded(self.text, separate=True))
            return "NumPy overlaps"

    def judged(
        self, plain: Plain, found: Sequence[Any], where: str, given: Mapping[str, Any]
    ) -> str:
        """Whether what was computed is what Python has; Different if Python does something else."""
        if plain.raised:
            return "NumPy raises"
        if plain.changed:
            raise Different(f"{where}: Python changes {plain.changed}")
        wanted = plain.results
        numbers = [each for each in wanted if each.dtype.kind in "fi"]
        if any(np.max(np.abs(each), initial=0) > LARGE for each in numbers):
            return "too large"
        if len(found) != len(wanted):
            raise Different(f"{where}: {len(found)} results, and Python has {len(wanted)}")
        for number, (one, two) in enumerate(zip(found, wanted, strict=True)):
            problem = self.grammar.difference(one, two, given.values())
            if problem:
                raise Different(f"{where}: result {number} {problem}")
        return "equal"


# Smaller programs.


def minimised(text: str, fails: Callable[[str], bool], seconds: float = 20.0) -> str:
    """A program without the statements that are not needed for it to fail."""
    start = time.monotonic()
    before = None
    while text != before:
        before, number = text, 0
        while time.monotonic() - start < seconds:
            smaller = without(text, number)
            if smaller is None:
                break
            if smaller != text and fails(smaller):
                text = smaller
            else:
                number += 1
    return text


def without(text: str, number: int) -> str | None:
    """A program without some part; None if it has fewer parts.

    A part is a result, a statement with what is in it, or a statement around others.
    """
    tree = ast.parse(text)
    parts: list[Callable[[], None]] = []
    for of in results(tree):
        parts += [partial(of.elts.__delitem__, index) for index in range(len(of.elts))]
    for block, index in reversed(list(bodies(tree))):
        inner: list[ast.stmt] = getattr(block[index], "body", [])
        nothing: list[ast.stmt] = [] if len(block) > 1 else [ast.Pass()]
        for rest in (nothing, inner) if inner else (nothing,):
            parts.append(partial(block.__setitem__, slice(index, index + 1), rest))
    if number >= len(parts):
        return None
    parts[number]()
    return ast.unparse(tree) + "\n"


def results(tree: ast.AST) -> Iterator[ast.Tuple]:
    """The tuples of more than one thing that a program returns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            if len(node.value.elts) > 1:
                yield node.value


def bodies(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """Every statement of a program: the list that it is in, and its place there."""
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                for index in range(len(block)):
                    yield block, index


# Many programs.


GRAMMARS = {
    "arrays": ARRAYS,
    "writes": Grammar(numpy_writes.generate),
    "containers": Grammar(container_programs.generate),
    "counters": Grammar(lambda seed, _: counted_programs.generate(seed)),
    "elements": Grammar(lambda seed, _: element_programs.generate(seed)),
    "dtypes": Grammar(
        lambda seed, _: dtype_programs.generate(seed),
        sizes=((5, 5), (1, 1)),
        arguments=dtype_programs.arguments,
        for_numpy=dtype_programs.widened,
        difference=dtype_programs.difference,
    ),
}
"""The grammars by what their programs are about."""


def attempt(seed: int, given: Namespace) -> Iterator[Outcome]:
    """Try the program of a seed."""
    text = GRAMMARS[given.grammar].generate(seed, given.shared)
    verdict = tried(text, seed, *_ways(seed, given))
    if verdict.kind in PROBLEMS:
        why = f"{verdict.kind}: {verdict.detail}"
        yield Outcome(verdict.kind, given.grammar, verdict.cause, why, text)
    else:
        yield Outcome(verdict.kind, given.grammar, verdict.detail)


def _ways(seed: int, given: Namespace) -> tuple[bool, bool, Grammar]:
    """Whether the program of a seed is checked as a file, whether it is compiled; its grammar."""
    compiling = bool(given.xla) and seed % given.xla == 0
    return seed % WHOLE == 0, compiling, GRAMMARS[given.grammar]


def smaller(seed: int, outcome: Outcome, given: Namespace) -> str:
    """Return a smaller program that shows the same problem."""

    def fails(text: str) -> bool:
        again = tried(text, seed, *_ways(seed, given))
        return (again.kind, again.cause) == (outcome.kind, outcome.detail)

    return outcome.text if outcome.kind == "timeout" else minimised(outcome.text, fails)


def own_arguments(parser: ArgumentParser) -> None:
    """Add the grammar and the ways to try its programs."""
    parser.add_argument("--shared", action="store_true", help="write to parameters, too")
    parser.add_argument("--grammar", choices=GRAMMARS, default="arrays", help="what is written")
    parser.add_argument("--xla", type=int, default=0, help="compile one program of so many")


CAMPAIGN = Campaign(
    about="Plain NumPy as kernels, beside NumPy.",
    attempt=attempt,
    texts=lambda seed, given: [GRAMMARS[given.grammar].generate(seed, given.shared)],
    default=2000,
    arguments=own_arguments,
    around=deep_and_quiet,
    smaller=smaller,
)
