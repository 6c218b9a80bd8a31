"""How griffe, which reads docstrings for the site, finds the public names of the package.

* The package lists them in `__init__.pyi`.  Two of them, `kernel` and `primitive`, are also the
  names of modules, which griffe would show in place of the functions.
* `pscdsl.stdlib` and `pscdsl.typing` have no `__init__.py`, so that griffe passes over them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from griffe import Alias, Extension, GriffeLoader, Module, visit


class PublicNames(Extension):
    """Binds the public names to what they name, and adds the folders that griffe passes over."""

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **kwargs: Any) -> None:
        """Complete the package `pscdsl` after it was read."""
        if pkg.name == "pscdsl":
            for name in ("stdlib", "typing"):
                self._add_folder(name, pkg, loader)
            self._bind(pkg)
            programs = texts()
            for name in ("random", "special", "tree"):
                order(pkg[name], programs)
            for module in pkg["stdlib"].members.values():
                order(module, programs)

    def _bind(self, package: Module) -> None:
        """Make each public name an alias of a definition, in place of a path through modules."""
        targets = {
            name: package[home.removeprefix("pscdsl.")][name]
            for name, home in package.imports.items()
            if home.startswith("pscdsl.")
            for home in [home.rpartition(".")[0]]
            if home != "pscdsl"
        }
        for name, target in targets.items():
            package.set_member(name, Alias(name, target, parent=package))

    def _add_folder(self, name: str, package: Module, loader: GriffeLoader) -> None:
        """Read the modules of a folder."""
        [initial] = {package.filepath} if isinstance(package.filepath, Path) else package.filepath
        folder = initial.parent / name
        library = Module(name, filepath=[folder], parent=package)
        package.set_member(name, library)
        for path in sorted(folder.glob("*.py")):
            module = visit(
                path.stem,
                filepath=path,
                code=path.read_text(encoding="utf-8"),
                extensions=loader.extensions,
                parent=library,
                docstring_parser=loader.docstring_parser,
                docstring_options=loader.docstring_options,
                modules_collection=loader.modules_collection,
                lines_collection=loader.lines_collection,
            )
            library.set_member(path.stem, module)


ROOT = Path(__file__).parents[2]
FOLDERS = ("examples", "stdlib", "benchmarks", "tests/stdlib", "docs")


def texts() -> Sequence[str]:
    """The programs and pages by whose names the reference is ordered."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.*"))]
    return [path.read_text(encoding="utf-8") for path in found if path.suffix in (".py", ".md")]


def order(module: Any, programs: Sequence[str]) -> None:
    """Let the reference list functions and classes by how often programs use them; then the rest.

    Only programs that name the module count.
    """
    path = module.path.removeprefix("pscdsl.")
    users = [text for text in programs if path in text]
    uses = Counter(word for text in users for word in re.findall(r"\w+", text))
    public = [name for name in module.members if not name.startswith("_")]
    defined = [name for name in public if not module.members[name].is_alias]
    module.exports = sorted(
        defined, key=lambda name: (module.members[name].is_attribute, -uses[name])
    )
