"""Modules as written: names are looked up in the source and evaluated when they are needed.

Nothing is imported or run.  `live` is the counterpart for modules as loaded; both
give the same values for the same source.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pscdsl._src.frontend.captures.captured import ProjectGuard
from pscdsl._src.frontend.captures.writes import Writes
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.assignments import assign
from pscdsl._src.frontend.interpreter.expressions import closure, evaluate, known_or_why
from pscdsl._src.frontend.interpreter.frames import Frame, NoProgram, Scope, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.writing import WritingKernel, as_called, definition_in
from pscdsl._src.frontend.modules.files import (
    LANGUAGE,
    LIBRARY_NAME,
    Files,
    Found,
    Question,
    absolute,
    module_name,
)
from pscdsl._src.frontend.modules.jax_programs import (
    ARRAY_MEMBERS,
    BESIDE,
    PACKAGES,
    TRANSPARENT_DECORATORS,
    JaxUse,
    is_package_of_ours,
    jax_use,
    takes_arrays,
)
from pscdsl._src.frontend.modules.known import (
    LOADING,
    builtin,
    known_attribute,
    known_module,
    star_names,
)
from pscdsl._src.frontend.purity import COMPILERS, instead_of, is_mutable
from pscdsl._src.frontend.text.bindings import Binding, Bindings, Node, exported, same
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.transformations.derived import derived_kernel
from pscdsl._src.frontend.transformations.traced import Transformed
from pscdsl._src.frontend.values import (
    POISON,
    AnyValue,
    Applicable,
    Atomic,
    External,
    KnownModule,
    Marker,
    StaticFunction,
)
from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.support.paths import resolved
from pscdsl._src.support.tracebacks import JAX_PACKAGES
from pscdsl.typing.codes.language import BadArguments, NoSuchAttribute, UnknownName
from pscdsl.typing.codes.limits import UnknownFunction
from pscdsl.typing.codes.projects import (
    BoundInSeveralPlaces,
    ComputedName,
    ImportsTooDeep,
    OnlyForTypeCheckers,
)
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label

MOST_IMPORTS = 200
"""Over how many modules a name may be reached."""


@dataclass(frozen=True)
class ModuleValue(Atomic):
    """A module of the project, used as a value."""

    name: str
    scope: StaticModule

    def lookup_attribute(self, name: str) -> AnyValue:
        """Return `module.name`."""
        return member(self.scope, name, written=True)


_CONSTANTS = (
    *(bool, int, float, complex, str, bytes, type(None)),
    *(External, KnownModule, Marker, ModuleValue),
)


class StaticModule:
    """The names of a module, from its source."""

    def __init__(
        self,
        project: Project,
        source: Source,
        module: str,
        path: str | None,
        folders: tuple[str, ...] = (),
    ) -> None:
        self.project = project
        self.source = source
        self._module = module
        self.path = path
        self.is_package = path is not None and os.path.basename(path) == "__init__.py"
        if path is not None and self.is_package:
            folders = (os.path.dirname(path),)
        self.folders = folders
        """The folders of its submodules, if it is a package; a namespace package has several."""
        self._bindings: Bindings | None = None
        self._jax_use: JaxUse | None = None
        self._unseen = False
        """Whether it takes all names of a module that cannot be read."""
        self._values: dict[str, AnyValue] = {}
        self._evaluating: set[str] = set()
        self._admitted: set[str] = set()
        self.captured: set[str] = set()
        """The names of values that can be written, which are compared when kernels run."""
        self.findings: list[Diagnostic] = []
        self.asked: set[Question] = set()
        """The modules that were looked up for this one's imports."""
        self.searched: set[str] = set()
        """The questions about all files that this module's bindings raised; see `Files.answer_to`.
        """

    @property
    def module(self) -> str:
        """The module's name."""
        return self._module

    @property
    def is_jax(self) -> bool:
        """Return whether its functions compute as JAX's do."""
        return self.jax_use is JaxUse.ALL

    @property
    def jax_use(self) -> JaxUse:
        """Return its share in JAX's dialect."""
        if self._jax_use is None:
            self._jax_use = jax_use(self.source, self.path, self.project.files.dialect)
        return self._jax_use

    @property
    def names(self) -> Bindings:
        """The bindings of each module-level name."""
        if self._bindings is None:
            self._bindings = Bindings([], lambda _: ())  # for modules that import each other
            self._bindings = Bindings(self.source.tree.body, self._star)
        return self._bindings

    def bindings(self) -> dict[str, list[Binding]]:
        """Return the statements that bind each module-level name, in order."""
        return self.names.every

    def _star(self, node: ast.ImportFrom) -> Iterable[str]:
        """Return the names that `from … import *` binds."""
        known = None if node.level else known_module(node.module or "")
        if known is not None and known.name != LIBRARY_NAME:
            return star_names(node.module or "")
        try:
            module = imported_module(self, node)
        except Failure:
            module = None  # each use of its names reports it
        if module is None:
            self._unseen = True
        return () if module is None or module is self else module.exports()

    def may_bind_more(self) -> bool:
        """Return whether it may have names that its text does not show."""
        self.bindings()  # reads the imports
        return self._unseen or "globals()" in self.text

    def may_name_kernels(self) -> bool:
        """Return whether its text, or that of a direct or indirect import, has our name."""
        if LANGUAGE in self.text or self.path is None:
            return LANGUAGE in self.text
        self.searched.add(f"leads {self.path}")
        return self.path in self.project.files.leading

    def exports(self) -> Iterable[str]:
        """Return the names that `from module import *` takes from this one."""
        listed = exported(self.source.tree.body, self._other_exports)
        if listed is not None:
            return listed
        return [name for name in self.names.last if not name.startswith("_")]

    def _other_exports(self, node: ast.expr) -> list[str] | None:
        """Return the list of `impl.__all__`, if `impl` is another module of the project."""
        if not isinstance(node, ast.Attribute) or node.attr != "__all__":
            return None
        value = evaluate(self.frame(), node.value)
        if not isinstance(value, ModuleValue) or value.scope is self:
            return None
        return exported(value.scope.source.tree.body, value.scope._other_exports)

    def own(self, name: str) -> AnyValue:
        """Return the value of a name bound in this module; KeyError if there is none."""
        if name in self._values:
            return self._values[name]
        if name in LOADING:
            return External(f"builtins.{name}")
        if not self.names.of(name):
            raise KeyError(name)
        found = [each for each in self.names.all_of(name) if not self._is_overload(each[1])]
        if name in self._evaluating:
            raise Failure(UnknownName(name=name, unassigned=True))
        self._evaluating.add(name)
        try:
            value = self._decided(name, [self._evaluate(name, *each) for each in found], found)
        finally:
            self._evaluating.discard(name)
        self._values[name] = value
        return value

    def _is_overload(self, statement: ast.stmt) -> bool:
        """Return whether a statement only declares an overload of a function that follows."""
        decorators = getattr(statement, "decorator_list", ()) if statement else ()
        return any(
            getattr(decorator, "attr", getattr(decorator, "id", "")) == "overload"
            and evaluate(self.frame(), decorator) == Marker("typing.overload")
            for decorator in decorators
        )

    def _decided(self, name: str, values: list[AnyValue], found: list[Binding]) -> AnyValue:
        """Return the value of a name if all statements that bind it agree, whichever runs last."""
        if values and same(values, _CONSTANTS):
            return values[0]
        *others, last = (self.source.span(statement) for _, statement in found)
        labels = tuple(Label(span.head(1), f"`{name}` is bound here, too") for span in others)
        finding = BoundInSeveralPlaces(name=name, span=last, labels=labels)
        return External(f"{self.module}.{name}", (finding,))

    def admitted(self, name: str) -> AnyValue:
        """Return the value of a name bound in this module; a Failure if something writes it."""
        value = self.own(name)
        if name not in self._admitted and not isinstance(value, External):
            self.guard.admit(self, name, value)
            self._admitted.add(name)
            if is_mutable(value):
                self.captured.add(name)
        return value

    @property
    def guard(self) -> ProjectGuard:
        """Return a guard that refuses values that something in the project writes."""
        return ProjectGuard(writes=self.project.writes, searched=self.searched)

    @property
    def text(self) -> str:
        """The text of the module, as it is searched for names."""
        return self.source.searched

    @property
    def place(self) -> str:
        """The path by which findings name it."""
        return self.source.path

    def library_module(self, name: str) -> ModuleValue | KnownModule | External:
        """Return a module of the standard library."""
        return module_value(self, f"{LIBRARY_NAME}.{name}")

    def jax_array_member(self, name: str) -> AnyValue | None:
        """Return an attribute that only arrays of JAX have, if this is a module of JAX's."""
        module = self.project.module(ARRAY_MEMBERS, self) if self.is_jax else None
        return member(module, name) if module is not None and module.names.of(name) else None

    def lookup(self, name: str, user: ast.AST | None = None) -> AnyValue:
        """Return the value of a name of this module or of Python, as its functions find it."""
        if self.names.only_for_types(name):
            raise Failure(OnlyForTypeCheckers(name=name))
        if self.names.may_be_unbound(name, user):
            raise Failure(UnknownName(name=name, unassigned=True))
        return self.lookup_annotation(name)

    def lookup_annotation(self, name: str) -> AnyValue:
        """Look up a name of an annotation, including imports for type checkers."""
        try:
            return self.admitted(name)
        except KeyError:
            if self._unseen:  # it may be among the names of a module that is not read
                return External(f"{self.module}.{name}", library=True)
            value = builtin(name)
        if name not in self._admitted:
            self.guard.of_builtin(self, name)
            self._admitted.add(name)
        return value

    def frame(self) -> Frame:
        """Return a frame in which module-level expressions are evaluated."""
        return Frame(Session(None), self.source, self)

    def _evaluate(self, name: str, binding: Node, statement: ast.stmt) -> AnyValue:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            assert isinstance(binding, ast.alias)
            return import_alias(self, statement, binding)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            return self.function(statement)
        if isinstance(statement, ast.ClassDef):
            # A class is defined in a scope.
            from pscdsl._src.frontend.classes import class_value

            return class_value(self.frame(), statement, self.module)
        frame = self.frame()
        if isinstance(statement, ast.Assign):
            value = evaluate(frame, statement.value)
            for target in statement.targets:
                if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(target)):
                    assign(frame, target, value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            assign(frame, statement.target, evaluate(frame, statement.value))
        else:
            return External(f"{self.module}.{name}")
        # A value that does not follow from the source is reported when it is used.
        value = frame.lookup(name) if name in frame.names else POISON
        return known_or_why(frame, value, f"{self.module}.{name}")

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> AnyValue:
        """Return the function that a statement binds, with its decorators applied."""
        frame = self.frame()
        value: AnyValue = closure(frame, node, node.name)
        for decorator in reversed(node.decorator_list):
            value = decorated(frame, decorator, value)
        return value


def decorated(frame: Frame, decorator: ast.expr, value: AnyValue) -> AnyValue:
    """Return the result of a decorator for a function."""
    if frame.scope.is_jax and _is_transparent(frame, decorator):
        return value
    function = evaluate(frame, decorator)
    if isinstance(function, Applicable) and not isinstance(function, External | Marker):
        try:
            made = function.apply(frame.here(decorator), (value,), {})
            if made is not POISON:  # its findings are those of another session
                return made
        except Failure as failure:
            frame.session.report(failure.at(frame.span(decorator)))
    if isinstance(value, Closure) and (name := decorator_name(frame, decorator)):
        unknown = UnknownFunction(
            function=value.name,
            decorator=name,
            instead="" if name in COMPILERS else instead_of(name),
            span=frame.span(decorator),
        )
        return External(f"@{frame.source.text_of(decorator)}", (unknown,))
    return External(frame.source.text_of(decorator), tuple(frame.session.findings))


def _is_transparent(frame: Frame, decorator: ast.expr) -> bool:
    """Return whether a decorator checks types at run time, or only says something."""
    head = evaluate(frame, decorator.func if isinstance(decorator, ast.Call) else decorator)
    return getattr(head, "name", "") in TRANSPARENT_DECORATORS


def decorator_name(frame: Frame, decorator: ast.expr) -> str:
    """Return the qualified name of an unknown decorator; empty for anything else.

    `numba.njit` for `@njit`, `@nb.njit(cache=True)` and `@partial(njit, cache=True)`.
    """
    while isinstance(decorator, ast.Call):
        function = evaluate(frame, decorator.func)
        partial = getattr(function, "name", "") == "functools.partial" and decorator.args
        decorator = decorator.args[0] if partial else decorator.func
    value = evaluate(frame, decorator)
    return value.name if isinstance(value, External) and not value.why else ""


def imported_module(scope: StaticModule, node: ast.ImportFrom) -> StaticModule | None:
    """Return the module of the project that `from … import` names."""
    if node.level:
        return scope.project.relative(node.level, node.module or "", scope)
    return scope.project.module(node.module or "", scope)


def member(module: StaticModule, name: str, *, written: bool = False) -> AnyValue:
    """Return the value of a name of another module, or a submodule of that name.

    `written`: refuse a value that something in the project writes.
    """
    project = module.project
    project.depth += 1
    try:
        if project.depth > MOST_IMPORTS:
            raise Failure(ImportsTooDeep(name=name, limit=MOST_IMPORTS))
        if module.names.may_be_unbound(name):
            raise Failure(UnknownName(name=name, unassigned=True))
        return module.admitted(name) if written else module.own(name)
    except KeyError:
        pass
    finally:
        project.depth -= 1
    full = f"{module.module}.{name}"
    inner = project.submodule(name, module) if module.folders else None
    if inner is not None:
        return ModuleValue(full, inner)
    if module.names.of("__getattr__"):
        raise Failure(ComputedName(module=module.module, name=name))
    if module.may_bind_more():
        return External(full)
    if is_package_of_ours(module.path):
        return External(full, library=True)  # JAX may have it
    if module.path is None:
        return External(full, library=True)  # a folder that holds no such module; another one may
    owner = f"module `{module.module}`"
    raise Failure(NoSuchAttribute(owner=owner, attribute=name, known=tuple(module.names.last)))


def import_alias(
    scope: StaticModule, node: ast.Import | ast.ImportFrom, alias: ast.alias
) -> AnyValue:
    """Return the value that one name of an import statement is bound to."""
    if isinstance(node, ast.Import):
        name = alias.name if alias.asname else alias.name.split(".")[0]
        return module_value(scope, name)
    base = node.module or ""
    if base == LIBRARY_NAME:
        return module_value(scope, f"{base}.{alias.name}")
    known = None if node.level else known_module(base)
    if known is not None:
        try:
            value = known_attribute(known, alias.name)
        except Failure:
            return External(f"{base}.{alias.name}", library=True)
        if isinstance(value, Meaning) and takes_arrays(scope.path):
            return value.of_jax()
        return value
    module = imported_module(scope, node)
    if module is scope:  # a package that imports one of its submodules
        inner = scope.project.submodule(alias.name, scope)
        return (
            External(alias.name, library=True) if inner is None else ModuleValue(alias.name, inner)
        )
    if module is not None:
        try:
            return member(module, alias.name)
        except Failure as failure:
            found = failure.at(scope.source.span(node)).diagnostics
            if any(each.code == "PSC932" or each.code == "PSC103" for each in found):
                return External(f"{module.module}.{alias.name}", found)
            raise
    return External(f"{'.' * node.level}{base}.{alias.name}", library=True)


def module_value(scope: StaticModule, name: str) -> ModuleValue | KnownModule | External:
    """Return a module as a value: a known module, one of the project, or an unknown one."""
    known = known_module(name)
    if known is not None:
        return known
    module = scope.project.module(name, scope)
    return External(name, library=True) if module is None else ModuleValue(name, module)


def imported(scope: Scope, node: ast.Import | ast.ImportFrom) -> dict[str, AnyValue]:
    """Return the names that an import inside a function binds."""
    if not isinstance(scope, StaticModule):
        from pscdsl._src.frontend.modules import live  # of loaded modules only

        assert isinstance(scope, live.LoadedModule)
        return live.imported_at_run_time(scope, node)
    return {
        alias.asname or alias.name.split(".")[0]: import_alias(scope, node, alias)
        for alias in node.names
    }


FAST_MATH: Final = "takes True or False for `fast_math`"
NO_WRITES: Final = "takes `writes` where it makes a kernel of a function, and nowhere else"


def make_kernel(
    here: Builder,
    function: AnyValue = None,
    *,
    donate: AnyValue = None,
    budget: AnyValue = None,
    fast_math: AnyValue = None,
    writes: AnyValue = None,
    **options: AnyValue,
) -> AnyValue:
    """Read `@psc.kernel`, `@psc.kernel(donate="state")`, `@psc.kernel(budget="flops <= 2*n")`."""
    given: dict[str, Any] = {
        "donate": donate,
        "budget": budget,
        "fast_math": fast_math,
        "writes": writes,
    }
    if fast_math is not None and not isinstance(fast_math, bool):
        raise Failure(BadArguments(function="psc.kernel", problem=FAST_MATH))
    if function is None and not options:
        return StaticFunction("pscdsl.kernel", partial(make_kernel, **given))
    if isinstance(function, Transformed) and not options:
        made = derived_kernel(function) if isinstance(here, NoProgram) else function
        if writes is not None:
            raise Failure(BadArguments(function="psc.kernel", problem=NO_WRITES))
        return made.with_options(**given) if isinstance(made, Definition) else made
    if writes is not None and isinstance(function, Definition | WritingKernel):
        raise Failure(BadArguments(function="psc.kernel", problem=NO_WRITES))
    writing, function = isinstance(function, Closure | WritingKernel), definition_in(function)
    if options or not isinstance(function, Closure | Definition):
        problem = "takes one function, written in Python"
        raise Failure(BadArguments(function="psc.kernel", problem=problem))
    if not isinstance(here, NoProgram):
        return function  # inside a kernel it is a helper that sees the kernel's values
    kernel = Definition(function) if isinstance(function, Closure) else function
    if any(each is not None for each in given.values()):
        kernel = kernel.with_options(**given)
    return as_called(kernel) if writing else kernel


MEANINGS["pscdsl.kernel"] = StaticFunction("pscdsl.kernel", make_kernel)


# The modules of a project, as values: one for each file, by whatever name it is reached.
#
# Every module records the questions that it raised: the modules that were looked up, and the names
# for which all files were searched. The findings in a file follow from its content, from the
# answers to these questions, and recursively from those of the modules that were found.


class Project:
    """The modules that a check may read: those below its roots, and our own library's."""

    def __init__(self, roots: Sequence[str] = (), files: Files | None = None) -> None:
        self.files = Files((), roots) if files is None else files
        self.by_path: dict[str, StaticModule] = {}
        self.depth = 0
        """The depth in modules of the current look-up."""
        self._namespaces: dict[tuple[str, ...], StaticModule] = {}
        self._added: list[StaticModule] = []
        self._writes: Writes | None = None

    def add(self, source: Source, path: str | None) -> StaticModule:
        """Add a module from its source; with a path its imports are found."""
        if path is None:
            module = StaticModule(self, source, "__main__", None)
        else:
            real = resolved(path)
            if real not in self.files.given:
                self.files = Files((*self.files.given, real), self.files.roots)
            module = self._made(real, source)
        self._added.append(module)
        self._writes = None
        return module

    @property
    def writes(self) -> Writes:
        """The project's writes to values that its kernels see."""
        if not self._added:
            return self.files.writes
        if self._writes is None:
            self._writes = Writes(self.files, {each.place: each.source for each in self._added})
        return self._writes

    def at(self, path: str) -> StaticModule:
        """Return the module of a file; a Failure if it is not Python."""
        found = self.by_path.get(path)
        return self._made(path, self.files.source(path)) if found is None else found

    def _made(self, path: str, source: Source) -> StaticModule:
        module = StaticModule(self, source, module_name(path)[0], path)
        self.by_path[path] = module
        return module

    def modules(self) -> tuple[StaticModule, ...]:
        """Return all modules that were needed."""
        return (*self.by_path.values(), *self._namespaces.values())

    def module(self, name: str, asker: StaticModule) -> StaticModule | None:
        """Return a module by its full name; None if its source is not below the roots."""
        own = () if asker.path is None else (module_name(asker.path)[1],)
        folders = tuple(dict.fromkeys((*own, *self.files.roots)))
        root = name.partition(".")[0] if asker.is_jax else ""
        ours = Question((JAX_PACKAGES,), name)
        if root in PACKAGES:
            return self._answer(ours, asker, name)
        found = self._answer(absolute(name, folders), asker, name)
        return self._answer(ours, asker, name) if found is None and root in BESIDE else found

    def relative(self, level: int, name: str, asker: StaticModule) -> StaticModule | None:
        """Find the module of `from ..name import`: `level` dots, and a name that may be empty."""
        if asker.path is None:
            return None
        folder = os.path.dirname(asker.path)
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        if name:
            return self._answer(Question((folder,), name), asker, name)
        above, base = os.path.split(folder)
        found = self._ask(Question((above,), base), asker)
        if found is None or found.folders != (folder,):
            found = Found(None, (folder,))  # not a package by itself, but a place for modules
        return self._module(found, base)

    def submodule(self, name: str, asker: StaticModule) -> StaticModule | None:
        """Return a module in a package, by the last part of its name."""
        full = f"{asker.module}.{name}"
        return self._answer(Question(asker.folders, name), asker, full)

    def _answer(self, question: Question, asker: StaticModule, name: str) -> StaticModule | None:
        found = self._ask(question, asker)
        return None if found is None else self._module(found, name)

    def _ask(self, question: Question, asker: StaticModule) -> Found | None:
        if not all(part.isidentifier() for part in question.name.split(".")):
            return None
        asker.asked.add(question)
        return self.files.finder.find(question)

    def _module(self, found: Found, name: str) -> StaticModule:
        if found.file is not None:
            return self.at(found.file)
        module = self._namespaces.get(found.folders)
        if module is None:
            source = Source(f"<namespace {name}>", "")
            module = StaticModule(self, source, name, None, found.folders)
            self._namespaces[found.folders] = module
        return module
