"""How much of a plain NumPy program must change to become a kernel, and what it computes then.

A program is taken as text from its module: its function, what that calls, and the imports.  The
decorator is added, with the parameters that it writes, and nothing else.  With `results=True`, the
final contents of what it writes are further results instead: the same program before kernels can
write into their arguments.
"""

# Programs are loaded from text, so their results have no static type.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ast
import copy
import inspect
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pscdsl._src.checker.check import check_source
from pscdsl._src.kernels.kernel import load_kernel
from pscdsl.typing.diagnostics import Severity
from tests.plain_numpy.program import Program, Sizes, difference, flat, leaves

Verdict = Literal["refused", "accepted", "fails"]
"""`fails`: it is accepted, but a call raises."""

LIBRARIES = ("numpy", "pscdsl")


@dataclass(frozen=True)
class Outcome:
    """What became of a program."""

    name: str
    changed: int
    """How many lines plain NumPy would not have: decorator, annotated headers, asserts."""
    verdict: Verdict
    code: str = ""
    message: str = ""
    """Of the first finding, or of the exception."""
    line: str = ""
    """Where the first finding is, as it is written."""
    apart: float = 0.0
    """The largest difference from NumPy, as a part of the largest number of each array."""
    runs: int = 0
    tolerance: float = 0.0
    check_seconds: float = 0.0
    run_seconds: float = 0.0
    """What compiling for all sizes and running took."""

    @property
    def equal(self) -> bool:
        """Whether it is accepted and computes what NumPy computes, up to rounding."""
        return self.verdict == "accepted" and self.apart <= self.tolerance

    def __str__(self) -> str:
        if self.verdict != "accepted":
            place = f"\n{'':38}{self.line}" if self.line else ""
            found = f"{self.verdict}  {self.code} {self.message}{place}"
        elif self.apart == 0.0:
            found = f"accepted  equal at {self.runs} sizes"
        elif self.equal:
            found = f"accepted  equal but for rounding, {self.apart:.0e}, at {self.runs} sizes"
        else:
            found = f"accepted  NOT EQUAL, {self.apart:.0e}"
        seconds = f"{self.check_seconds:6.1f}{self.run_seconds:6.1f}"
        return f"{self.name:26}{self.changed:3}{seconds}  {found}"


def outcome(program: Program, results: bool = False) -> Outcome:
    """Check a program with only the decorator added, and run it at its sizes if it is accepted."""
    text = source(program, results)
    started = time.perf_counter()
    result = check_source(text, f"{program.name}.py")
    checked = time.perf_counter()
    about = Outcome(
        program.name,
        changed(text),
        "refused",
        tolerance=program.tolerance,
        check_seconds=checked - started,
    )
    errors = [each for each in result.diagnostics if each.severity is Severity.ERROR]
    if errors:
        first = min(errors, key=lambda each: each.span.line)
        line = text.splitlines()[first.span.line - 1].strip()
        return replace(about, code=first.code, message=first.message(), line=line)
    if [kernel.status for kernel in result.kernels] != ["ok"]:
        return replace(about, message="it is not checked")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{program.name}.py")
        path.write_text(text, encoding="utf-8")
        kernel = load_kernel(path, program.name)
        apart, runs = 0.0, 0
        for sizes in program.sizes:
            if not all(array.size for array in flat(program.inputs(sizes))):
                continue  # a size of 0 would need an assert that admits it
            try:
                apart = max(apart, compared(program, kernel, sizes, results))
            except Exception as error:
                said = f"{type(error).__name__} at {sizes}: {error}".splitlines()[0]
                return replace(about, verdict="fails", message=said)
            runs += 1
    seconds = time.perf_counter() - checked
    return replace(about, verdict="accepted", apart=apart, runs=runs, run_seconds=seconds)


def compared(program: Program, kernel: Any, sizes: Sizes, results: bool = False) -> float:
    """The largest difference of the results and of all arguments after a call, from NumPy's."""
    arguments = program.inputs(sizes)
    ours = copy.deepcopy(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = leaves([program.function(*arguments), program.written(arguments)])
        found = leaves(kernel(*ours))
    if not results:
        wanted, found = leaves([wanted, arguments]), leaves([found, program.written(ours), ours])
    if len(found) != len(wanted):
        return float("inf")
    return max(difference(*both) for both in zip(found, wanted, strict=True))


def source(program: Program, results: bool = False) -> str:
    """The text of a module that has the program as its only kernel."""
    module = sys.modules[program.function.__module__]
    text = inspect.getsource(module)
    lines = text.splitlines()
    tree = ast.parse(text)
    needed = closure(tree, program.name)
    parts: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if imported(node) in LIBRARIES:
                parts.append("\n".join(lines[node.lineno - 1 : node.end_lineno]))
        elif needed & bound(node):
            parts.append("\n".join(lines[node.lineno - 1 : node.end_lineno]))
            if isinstance(node, ast.FunctionDef) and node.name == program.name:
                if results:
                    parts[-1] = returning(node, program.writes)
                parts[-1] = f"{decorator(() if results else program.writes)}\n{parts[-1]}"
    return "import pscdsl as psc\n" + "\n\n".join(parts) + "\n"


def returning(node: ast.FunctionDef, writes: Sequence[str]) -> str:
    """The function that writes into copies, and returns them after its own result."""
    if not writes:
        return ast.unparse(node)
    types = {each.arg: each.annotation for each in node.args.args}
    assert node.returns is not None
    own = ast.unparse(node.returns)
    kinds = [ast.unparse(kind) for name, kind in types.items() if kind and name in writes]
    names = [name for name in types if name in writes]
    last = node.body[-1]
    if own != "None":
        assert isinstance(last, ast.Return)
        assert last.value is not None
        kinds, names = [own, *kinds], [ast.unparse(last.value), *names]
        node.body.pop()
    node.returns = ast.parse(f"tuple[{', '.join(kinds)}]", mode="eval").body
    copies = ast.parse("\n".join(f"{name} = {name}.copy()" for name in writes)).body
    node.body = [*copies, *node.body, *ast.parse(f"return ({', '.join(names)},)").body]
    return ast.unparse(ast.fix_missing_locations(node))


def decorator(writes: Sequence[str]) -> str:
    """What makes a function a kernel."""
    if not writes:
        return "@psc.kernel"
    return f"@psc.kernel(writes={tuple(writes)!r})".replace("'", '"')


def imported(node: ast.Import | ast.ImportFrom) -> str:
    """The package that an import names."""
    name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
    return (name or "").partition(".")[0]


def bound(node: ast.stmt) -> set[str]:
    """The names that a statement of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {each.id for each in node.targets if isinstance(each, ast.Name)}
    return set()


def closure(tree: ast.Module, name: str) -> set[str]:
    """The names of a module that a function reaches, itself included."""
    uses = {
        each: {found.id for found in ast.walk(node) if isinstance(found, ast.Name)}
        for node in tree.body
        for each in bound(node)
    }
    reached, rest = set[str](), [name]
    while rest:
        each = rest.pop()
        if each in uses and each not in reached:
            reached.add(each)
            rest.extend(uses[each])
    return reached


def changed(text: str) -> int:
    """How many lines were added to plain NumPy, or changed."""
    return sum(1 for _ in changes(ast.parse(text)))


def changes(tree: ast.Module) -> Iterator[ast.AST]:
    """The decorator, the annotated headers and the asserts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from node.decorator_list
            yield node
        elif isinstance(node, ast.Assert):
            yield node
