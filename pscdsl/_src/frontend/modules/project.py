"""The modules of a project, as values: one for each file, by whatever name it is reached.

Every module keeps a record of what was asked for its sake: which modules were looked for, and for
which names all files were searched.  What is found of a file follows from its content, from the
answers to these questions, and from the same of the modules that were the answers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from pscdsl._src.frontend.captures.resolution import Module
from pscdsl._src.frontend.interpreter.captures import Captures
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.modules.finding import Found, Question, absolute, module_name
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.support.paths import resolved


class Project:
    """The modules that a check may read: those below its roots, and our own library's."""

    def __init__(self, roots: Sequence[str] = (), files: Files | None = None) -> None:
        self.files = Files((), roots) if files is None else files
        self.by_path: dict[str, StaticModule] = {}
        self.depth = 0
        """How many modules deep the name is that is being looked up."""
        self._namespaces: dict[tuple[str, ...], StaticModule] = {}
        self._added: list[StaticModule] = []
        self._captures: Captures | None = None

    def add(self, source: Source, path: str | None) -> StaticModule:
        """A module from its source; with a path its imports are found."""
        if path is None:
            module = StaticModule(self, source, "__main__", None)
        else:
            real = resolved(path)
            if real not in self.files.given:
                self.files = Files((*self.files.given, real), self.files.roots)
            module = self._made(real, source)
        self._added.append(module)
        self._captures = None
        return module

    @property
    def captures(self) -> Captures:
        """What the project writes of that which its kernels see."""
        if not self._added:
            return self.files.captures
        if self._captures is None:
            added = {each.place for each in self._added}
            others = (each for each in self.files.texts if each.place not in added)
            texts: tuple[Module, ...] = (*self._added, *others)
            self._captures = Captures(lambda: texts)
        return self._captures

    def at(self, path: str) -> StaticModule:
        """The module of a file; a Failure if it is not Python."""
        found = self.by_path.get(path)
        return self._made(path, self.files.source(path)) if found is None else found

    def _made(self, path: str, source: Source) -> StaticModule:
        module = StaticModule(self, source, module_name(path)[0], path)
        self.by_path[path] = module
        return module

    def modules(self) -> tuple[StaticModule, ...]:
        """All modules that were needed."""
        return (*self.by_path.values(), *self._namespaces.values())

    def module(self, name: str, asker: StaticModule) -> StaticModule | None:
        """A module by its full name; None if its source is not below the roots."""
        own = () if asker.path is None else (module_name(asker.path)[1],)
        folders = tuple(dict.fromkeys((*own, *self.files.roots)))
        return self._answer(absolute(name, folders), asker, name)

    def relative(self, level: int, name: str, asker: StaticModule) -> StaticModule | None:
        """What `from ..name import` looks into: `level` dots, and a name that may be empty."""
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
        """A module in a package, by the last part of its name."""
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
