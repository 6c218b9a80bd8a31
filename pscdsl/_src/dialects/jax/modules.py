"""The files of a project as JAX programs: each is read when a name of it is needed."""

from __future__ import annotations

from pscdsl._src.dialects.jax.names import Meaning, Program, read_program
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.modules.jax_programs import PACKAGES, is_package_of_ours
from pscdsl._src.frontend.modules.scope import Project, StaticModule
from pscdsl.typing.diagnostics import Failure

_LIBRARIES = PACKAGES | frozenset("builtins functools jaxtyping numpy pscdsl typing".split())
"""Packages whose functions are known, or do nothing with keys, and are not read."""


class Modules:
    """The programs of a project by their paths, and the meanings of imports."""

    def __init__(self, files: Files) -> None:
        self._project = Project(files=files)
        self._programs: dict[StaticModule, Program] = {}
        self._modules: dict[Program, StaticModule] = {}
        self._imported: dict[tuple[Program, str], Meaning | None] = {}
        self._used: dict[Program, dict[Program, None]] = {}

    def program(self, module: StaticModule) -> Program:
        """Return the program of a module that is checked."""
        path = module.path
        if path is None:
            return read_program(module.source)
        own = self._project.by_path.get(path)
        if own is None or own.source is not module.source:
            own = StaticModule(self._project, module.source, module.module, path)
            self._project.by_path[path] = own
        return self._program(own)

    def _program(self, module: StaticModule) -> Program:
        found = self._programs.get(module)
        if found is None:
            found = read_program(module.source, self, module.path)
            self._programs[module] = found
            self._modules[found] = module
        return found

    def imported(self, asker: Program, full: str) -> Meaning | None:
        """Return what an import of a program means; None if that is not in the project."""
        key = (asker, full)
        if key not in self._imported:
            self._imported[key] = None  # for modules that import each other
            self._imported[key] = self._search(asker, full)
        return self._imported[key]

    def _search(self, asker: Program, full: str) -> Meaning | None:
        name = full.lstrip(".")
        level = len(full) - len(name)
        first, *rest = name.split(".")
        if not level and first in _LIBRARIES:
            return None
        own = self._modules[asker]
        try:
            if level:
                module = self._project.relative(level, "", own)
            else:
                module = self._project.module(first, own)
                if module is not None and is_package_of_ours(module.path):
                    return None
        except Failure:
            return None
        found: Meaning | None = None if module is None else self._use(asker, module)
        if level and found is asker:  # a package that imports its own modules
            found = self.submodule(asker, first)
        elif level:
            rest = [first, *rest]
        for part in rest:
            if isinstance(found, str):
                found = f"{found}.{part}"
            elif isinstance(found, Program):
                found = found.member(part)
            else:
                return None
        return found

    def submodule(self, package: Program, name: str) -> Program | None:
        """Return a module in a package."""
        own = self._modules[package]
        try:
            module = self._project.submodule(name, own) if own.folders else None
        except Failure:
            return None
        return None if module is None else self._use(package, module)

    def _use(self, asker: Program, module: StaticModule) -> Program:
        program = self._program(module)
        self._used.setdefault(asker, {})[program] = None
        return program

    def register(self, program: Program, module: StaticModule) -> None:
        """Note in the project of a checked module what was read for it, directly or not."""
        pending, seen = [program], {program}
        while pending:
            each = pending.pop()
            own = self._modules.get(each)
            if own is None:
                continue
            reader = module
            if each is not program and own.path is not None:
                reader = module.project.at(own.path)
            reader.asked |= own.asked
            more = [other for other in self._used.get(each, ()) if other not in seen]
            seen.update(more)
            pending += more
