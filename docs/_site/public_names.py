"""How griffe, which reads docstrings for the site, finds the public names of the package.

* The package lists them in `__init__.pyi`.  Two of them, `kernel` and `primitive`, are also the
  names of modules, which griffe would show in place of the functions.
* `pscdsl.stdlib` and `pscdsl.typing` have no `__init__.py`, so that griffe passes over them.
"""

from __future__ import annotations

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
                modules_collection=loader.modules_collection,
                lines_collection=loader.lines_collection,
            )
            library.set_member(path.stem, module)
