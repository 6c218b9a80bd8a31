"""JAX functions as kernels of a module of their own, each compared with the function of JAX.

`port` returns a `Ported`: the text, the functions that it has, and those that it has not, with the
reason. A function is written if our checker proves the text, and `differs` finds nothing: for each
typing of the function of JAX, the kernel has a program with the same parameters, whose result has
the same type for all sizes, and the same values for random arrays of some sizes.

`port_text` makes the text, and is not trusted.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pscdsl._src.checker.check import check_definition, deep_stack, quiet
from pscdsl._src.checker.fixing import fix_all
from pscdsl._src.checker.jax_functions import JaxFunction, annotated_functions, cause
from pscdsl._src.discover.equality import Places, difference, typed
from pscdsl._src.discover.port_text import Declared, Part, Rewriter, Unportable
from pscdsl._src.frontend.annotations import spec_of
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.jax_annotations import in_dialect
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.modules.jax_programs import enables_x64
from pscdsl._src.frontend.modules.kernels import find_kernels
from pscdsl._src.frontend.modules.scope import Project, StaticModule
from pscdsl._src.frontend.text.source import FunctionStatement, targets
from pscdsl._src.frontend.values import Poisoned
from pscdsl._src.ir.jax_promotion import JaxPromotion
from pscdsl._src.ir.program import Function
from pscdsl.typing.array_types import StaticType
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity
from pscdsl.typing.signatures import Spec, StaticSpec, UnionSpec

_DTYPES: Final = "PSC401"
"""Arrays of different dtypes meet."""
MOST_PROGRAMS: Final = 24
"""The most programs of one function whose values are compared, spread evenly."""
_OTHERS: Final = frozenset({"numpy", "typing_extensions"})


@dataclass(frozen=True)
class Written:
    """A function that is ported."""

    name: str
    line: int
    notes: tuple[str, ...] = ()
    """Differences in meaning."""


@dataclass(frozen=True)
class Refused:
    """A function that is not ported."""

    name: str
    line: int
    why: str
    is_proven: bool = True
    """True if it is right as a function of JAX."""

    @property
    def family(self) -> str:
        """The reason without names: refusals are counted by it."""
        code, colon, _ = self.why.partition(": ")
        return code if colon and code.startswith("PSC") else self.why


@dataclass(frozen=True)
class Ported:
    """The outcome for one file."""

    text: str
    """The module with the kernels; empty if there are none."""
    written: tuple[Written, ...]
    refused: tuple[Refused, ...]


def port(files: Files, path: str) -> Ported:
    """Return the functions of a JAX file as kernels, as far as they are proven equal."""
    with deep_stack(), quiet():
        module = Project(files=files).at(path)
        functions = [each for each in annotated_functions(module)]
        return _Port(files, path, module, functions).run()


class _Port:
    """The port of one file."""

    def __init__(
        self, files: Files, path: str, module: StaticModule, functions: Sequence[JaxFunction]
    ) -> None:
        self.files = files
        self.path = path
        self.module = module
        self.rewriter = Rewriter(module.source)
        self.promotion = JaxPromotion(enables_x64(module.source))
        self.chosen: dict[ast.AST, JaxFunction] = {
            each.node: each for each in functions if each.is_right
        }
        self.refused = [
            Refused(each.name, each.node.lineno, _unproven(each), is_proven=False)
            for each in functions
            if not each.is_right
        ]
        self.kernels: dict[ast.AST, Declared] = {}
        self._parts: dict[str, Part | Unportable] = {}

    def run(self) -> Ported:
        """Leave out functions until all others are right."""
        for node, function in [*self.chosen.items()]:
            try:
                self.kernels[node] = _declared(function)
            except Unportable as problem:
                self._refuse(function, problem)
        while self.chosen:
            self._parts = {}
            parts: dict[ast.stmt, Part] = {}
            wrong = False
            for function in [*self.chosen.values()]:
                try:
                    for part in self._closure(function.name.partition(".")[0]):
                        parts[part.node] = part
                except Unportable as problem:
                    wrong = True
                    method = problem.method
                    if method is not None and method is not function.node:
                        function = self.chosen.get(method, function)
                    self._refuse(function, problem)
                    break
            if wrong:
                continue
            text = self._with_casts(self.rewriter.module(parts.values()))
            problems = self._problems(text)
            if not problems:
                written = [
                    Written(each.name, each.node.lineno, self._notes(each))
                    for each in self.chosen.values()
                ]
                return Ported(text, tuple(written), self._all_refused())
            for function, why in problems:
                self._refuse(function, Unportable(why))
        return Ported("", (), self._all_refused())

    def _all_refused(self) -> tuple[Refused, ...]:
        return tuple(sorted(self.refused, key=lambda each: each.line))

    def _refuse(self, function: JaxFunction, problem: Unportable) -> None:
        self.chosen.pop(function.node, None)
        self.kernels.pop(function.node, None)
        instead = f": {problem.instead}" if problem.instead else ""
        line = getattr(problem.node, "lineno", function.node.lineno)
        self.refused.append(Refused(function.name, line, problem.why + instead))

    def _closure(self, name: str) -> Iterator[Part]:
        """Yield the statement of a name, and those that it needs, directly or not."""
        pending, met = [name], set[str]()
        while pending:
            each = pending.pop()
            if each in met:
                continue
            met.add(each)
            part = self._part(each)
            if part is not None:
                yield part
                pending += sorted(part.needs - met)

    def _part(self, name: str) -> Part | None:
        """Return the statement that binds a name, rewritten; None for an import that stays."""
        if name not in self._parts:
            imported = self.rewriter.program.module.imports.get(name)
            if imported is not None:
                root = imported.partition(".")[0]
                if root not in sys.stdlib_module_names | _OTHERS:
                    raise Unportable(f"`{name}` comes from another module: `{imported}`")
                return None
            bound = [node for node in self.module.source.tree.body if name in targets(node)]
            if len(bound) != 1 or not isinstance(
                bound[0], FunctionStatement | ast.ClassDef | ast.Assign | ast.AnnAssign
            ):
                raise Unportable(f"`{name}` is bound in several places, or under a condition")
            try:
                self._parts[name] = self.rewriter.part(bound[0], self.kernels, self._field)
            except Unportable as problem:
                self._parts[name] = problem
        found = self._parts[name]
        if isinstance(found, Unportable):
            raise found
        return found

    def _field(self, annotation: ast.expr) -> Spec:
        """Return the type of a field of a class of records."""
        try:
            return in_dialect(spec_of(self.module.frame(), annotation), self.promotion)
        except (Failure, Poisoned):
            raise Unportable("the type of a field is open", annotation) from None

    def _notes(self, function: JaxFunction) -> tuple[str, ...]:
        """Return the differences in meaning of a function and of what it needs."""
        parts = self._closure(function.name.partition(".")[0])
        return tuple(dict.fromkeys(note for part in parts for note in part.notes.values()))

    def _files(self, text: str) -> Files:
        files = self.files.changed({self.path: text.encode()})
        files.dialect = "psc"
        return files

    def _with_casts(self, text: str) -> str:
        """Return a text with casts where dtypes meet that JAX promotes."""

        def wanted(found: Sequence[Diagnostic], _: Mapping[str, str]) -> list[Diagnostic]:
            return [each for each in found if each.code == _DTYPES]

        fixed = fix_all(self._files(text), [self.path], wanted, unsafe=True)
        return fixed.contents.get(self.path, text.encode()).decode()

    def _problems(self, text: str) -> list[tuple[JaxFunction, str]]:
        """Return the functions that are no kernels in a text, or other ones than in JAX."""
        files = self._files(text)
        every = [*self.chosen.values()]
        try:
            module = Project(files=files).at(self.path)
            problems: list[Diagnostic] = []
            kernels = dict(find_kernels(module, problems))
        except Failure as failure:
            return [(each, cause(failure.diagnostics[0])) for each in every]
        found = [
            (each, why) for each in every if (why := self._problem(each, kernels.get(each.name)))
        ]
        if not found and any(each.severity is Severity.ERROR for each in problems):
            return [(each, cause(problems[0])) for each in every]
        return found

    def _problem(self, function: JaxFunction, kernel: Definition | None) -> str:
        if kernel is None:
            return "the definition is no kernel"
        found, status = check_definition(kernel)
        errors = [each for each in found if each.severity is Severity.ERROR]
        if status != "ok" or errors:
            return cause((errors or found)[0])
        notes = self._notes(function)
        places = Places.IN_RANGE if notes else Places.ALL
        if any("negative" in each for each in notes):
            places = Places.FROM_START
        return differs(kernel, function, places)


def _unproven(function: JaxFunction) -> str:
    return cause(function.found[0]) if function.found else function.unknown


def _declared(function: JaxFunction) -> Declared:
    """Return the types of a function: unions of those that are proven."""
    specs: dict[str, dict[Spec, None]] = {}
    results: dict[Spec, None] = {}
    for variant in function.variants:
        for each in variant.signature.parameters:
            specs.setdefault(each.name, {})[each.spec] = None
        if variant.signature.result is not None:
            results[variant.signature.result] = None
    inferred = {each.result: None for each in _programs(function) if each.result is not None}
    if any(isinstance(each, StaticSpec) for found in specs.values() for each in found):
        inferred = {}  # it may be another type for other values
    possible = [each for known in (results, inferred) if len(known) == 1 for each in known]
    parameters = {
        name: next(iter(found)) if len(found) == 1 else UnionSpec(tuple(found))
        for name, found in specs.items()
    }
    given = [x.arg for x in (*function.node.args.posonlyargs, *function.node.args.args)]
    if any(name not in given and "_of_" in name for name in parameters):
        raise Unportable("its object is made by a constructor")
    return Declared(parameters, possible)


def _programs(function: JaxFunction) -> list[Function]:
    """Return the typed programs of a function that is right."""
    found: list[Function] = []
    for variant in function.variants:
        for choice in variant.signature.choices() or ():
            with suppress(Excluded):
                found.append(variant.instance(choice))
    return found


def differs(kernel: Definition, function: JaxFunction, places: Places = Places.ALL) -> str:
    """Return how a kernel differs from a function of JAX; empty if it does not."""
    wanted = _programs(function)
    if not wanted:
        return "it has no program to compare with"
    statics = {
        name: tree.value
        for each in wanted
        for name, tree in each.parameters
        if isinstance(tree, StaticType) and type(tree.value) is int
    }
    mine: dict[tuple[tuple[str, str], ...], Function] = {}
    for choice in kernel.signature.choices() or ():
        for each in {choice, choice.with_statics(statics)} if statics else {choice}:
            with suppress(Excluded, Failure):
                program = kernel.instance(each)
                mine.setdefault(typed(program), program)
    step = max(1, len(wanted) // MOST_PROGRAMS)
    for number, program in enumerate(wanted):
        own = mine.get(typed(program))
        if own is None:
            shown = ", ".join(f"{name}: {text}" for name, text in typed(program))
            return f"it takes no arguments ({shown})"
        if number % step == 0 and (found := difference(own, program, places)):
            return found
    return ""


def by_cause(refused: Sequence[Refused]) -> Counter[str]:
    """Return the number of refusals of each cause."""
    return Counter(each.family for each in refused)
