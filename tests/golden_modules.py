"""The StableHLO of every kernel of the library, the examples and the benchmarks, to be compared.

    python -m tests.golden_modules --write FOLDER      before a change
    python -m tests.golden_modules --compare FOLDER    after it: 1 if a module differs

A change that only moves code leaves every module as it was.  Locations are left out.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pscdsl._src.calls.errors import CheckError
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.modules.kernels import find_kernels
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.ir.program import Function
from pscdsl._src.kernels.emission import emitted
from pscdsl._src.transforms.simplify import simplify, with_largest
from pscdsl._src.xla.emit.context import module_text
from pscdsl.typing.diagnostics import Failure

ROOT = Path(__file__).parent.parent
FOLDERS = ("stdlib", "examples", "benchmarks/workloads")
SIZES = (3, 64, 1000)
"""About how large the sizes are: forms are chosen by them."""
CHOICES = 4
"""Of what a signature leaves open, so many are tried."""


def main() -> int:
    """Write the modules, or compare them with those that were written."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden_modules", description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--portable", action="store_true", help="modules for any device")
    given = parser.parse_args()
    if given.write is not None:
        given.write.mkdir(parents=True, exist_ok=True)
        count = 0
        for name, text in modules(portable=given.portable):
            (given.write / f"{name}.mlir").write_text(text, encoding="utf-8")
            count += 1
        print(f"{count} modules written")
        return 0
    return _compared(given.compare, portable=given.portable)


def _compared(folder: Path, *, portable: bool) -> int:
    before = {path.stem for path in folder.glob("*.mlir")}
    met: set[str] = set()
    differ: list[str] = []
    for name, text in modules(portable=portable):
        met.add(name)
        path = folder / f"{name}.mlir"
        old = path.read_text(encoding="utf-8") if path.is_file() else ""
        if old != text:
            differ.append(name)
            lines = difflib.unified_diff(old.splitlines(), text.splitlines(), name, n=0)
            print("\n".join([*lines][:12]))
    missing = sorted(before - met)
    print(f"{len(met)} modules, {len(differ)} differ, {len(missing)} are missing")
    for name in [*differ, *missing][:50]:
        print(f"  {name}")
    return int(bool(differ or missing))


def modules(*, portable: bool = False) -> Iterator[tuple[str, str]]:
    """A name and the text of each module."""
    for name, function in programs():
        for scale in SIZES:
            sizes = sizes_near(function, scale)
            if sizes is not None:
                yield f"{name}.{scale}", _text(function, sizes, portable)


def programs(
    folders: Sequence[str] = FOLDERS, choices: int = CHOICES
) -> Iterator[tuple[str, Function]]:
    """A name and the program of each kernel, for the first choices that its signature leaves."""
    for folder in folders:
        for path in sorted((ROOT / folder).glob("*.py")):
            for name, definition in _definitions(path):
                for index, function in enumerate(_instances(definition, choices)):
                    yield f"{path.stem}.{name}.{index}", function


def _text(function: Function, sizes: Mapping[str, int], portable: bool) -> str:
    try:
        return module_text(emitted(function, sizes, portable=portable))
    except CheckError as error:
        return f"refused: {', '.join(each.code for each in error.diagnostics)}\n"


def _definitions(path: Path) -> Iterator[tuple[str, Definition]]:
    module = Project().add(Source(str(path), path.read_text(encoding="utf-8")), str(path))
    yield from find_kernels(module, [])


def _instances(definition: Definition, choices: int) -> Iterator[Function]:
    """The program of the first choices that a signature leaves, as kernels optimise it."""
    for choice in (definition.signature.choices() or [])[:choices]:
        try:
            yield with_largest(simplify(definition.instance(choice)))
        except (Excluded, Failure):  # nobody calls it, or it is wrong on purpose
            continue


def sizes_near(function: Function, scale: int) -> dict[str, int] | None:
    """Sizes of about a magnitude that the preconditions admit, all different where they may be."""
    names = function.dims
    for spread in (range(len(names)), [0] * len(names), range(len(names), 0, -1)):
        for start in (scale, scale + 1, scale + 3, 2 * scale, 8, 4, 2, 1):
            sizes = {name: start + step for name, step in zip(names, spread, strict=True)}
            if _admitted(function, sizes):
                return sizes
    return None


def _admitted(function: Function, sizes: Mapping[str, int]) -> bool:
    return all(fact.holds(sizes) for fact in function.facts.facts)


if __name__ == "__main__":
    sys.exit(main())
