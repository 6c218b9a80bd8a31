"""Run NumPy's and SciPy's own tests, and record the calls that they make.

`python -m tests.replay.recording FILE SECONDS TESTS...` writes the distinct calls to a file.  The
source of the tests is changed as it is loaded: calls, operators, subscripts and some attributes
pass through a `Recorder`.  NumPy itself is not changed, so that what its functions call is not
recorded.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import operator
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType
from typing import Any, Final

import numpy as np
import pytest

from tests.replay.calls import LARGEST, Call, LeftOut, Recording, copied, is_array

TESTS: Final = {
    "numpy/_core/tests": "array_coercion casting_floatingpoint_errors einsum finfo function_base "
    "getlimits half indexing item_selection mem_overlap multiarray nep50_promotions numeric "
    "regression scalar_methods scalarmath shape_base ufunc umath umath_accuracy umath_complex",
    "numpy/lib/tests": "array_utils arraypad arraysetops function_base histograms index_tricks "
    "nanfunctions polynomial regression shape_base stride_tricks twodim_base type_check ufunclike "
    "utils",
    "numpy/linalg/tests": "deprecations linalg regression",
    "numpy/fft/tests": "helper pocketfft",
    "scipy/special/tests": "basic data digamma erfinv gamma gammainc logit loggamma logsumexp "
    "mpmath nan_inputs ndtr spfun_stats zeta",
    "scipy/linalg/tests": "basic batch decomp decomp_cholesky",
    "scipy/fft/tests": "basic helper multithreading",
}
"""The tests of functions that kernels have, by folder."""
SECONDS: Final = 240
"""The time for the tests of one file; those after it are not run."""
ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = Path(np.__file__).parents[1]
MOST: Final = 100
"""The most distinct calls of a function that are recorded of one test."""
MOST_OF_FILE: Final = 1000
"""The most that are recorded of the tests of a file."""
ATTRIBUTES: Final = ("T", "mT", "real", "imag")
OPERATORS: Final[dict[type[ast.AST], str]] = {
    **{ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Mod: "mod"},
    **{ast.FloorDiv: "floordiv", ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and_"},
    **{ast.BitOr: "or_", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift"},
    **{ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"},
    **{ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"},
}
BUILTINS: Final = ("abs", "divmod", "pow", "round")
ASSERTS: Final = ("assert_raises", "assert_warns", "assert_no_warnings", "raises", "warns")


def functions() -> dict[int, tuple[str, Any]]:
    """Return the functions that have a meaning in kernels, by the identity of their objects."""
    from pscdsl._src.frontend.modules.known import register_all
    from pscdsl._src.language.meanings import MEANINGS, Meaning
    from pscdsl.numpy import calling

    register_all()
    names: dict[int, tuple[str, Any]] = {}
    for path, meaning in MEANINGS.items():
        package, *rest = path.split(".")
        if package not in ("numpy", "scipy") or not isinstance(meaning, Meaning):
            continue
        if meaning.body.__module__ == calling.__name__ or rest[0] in ("ndarray", "dtype"):
            continue
        __import__(path.rpartition(".")[0] if package == "scipy" else "numpy")
        object_: Any = sys.modules[package]
        for part in rest:
            object_ = getattr(object_, part, None)
        if object_ is None:
            continue
        if isinstance(getattr(object_, "__self__", None), np.ufunc):
            continue  # methods of ufuncs are new objects whenever they are read
        names.setdefault(id(object_), (path, object_))
    for name in BUILTINS:
        names[id(getattr(builtins, name))] = f"builtins.{name}", getattr(builtins, name)
    return names


class Recorder:
    """What the changed tests call."""

    def __init__(self) -> None:
        from pscdsl._src.language.meanings import MEANINGS
        from pscdsl.numpy import methods

        self.functions = functions()
        self.recording = Recording()
        self.methods = frozenset(name for name in methods.NAMES if name not in ATTRIBUTES)
        self.of_ufuncs = frozenset(name for name in MEANINGS if name.count(".") == 2)
        self.keys = set[bytes]()
        self.of_test = Counter[str]()
        self.of_file = Counter[str]()

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, and record the call if kernels have one of its name."""
        name = self.named(function, args)
        if name is None:
            called = getattr(function, "__name__", "")
            if called in ASSERTS and len(args) > 1 and callable(args[1]):
                inner = self.named(args[1], args[2:])
                before = inner and self.taken(inner, self.whole(args[1], args[2:]), kwargs)
                if before:
                    self.keep(before, None)
            return function(*args, **kwargs)
        before = self.taken(name, self.whole(function, args), kwargs)
        result = None
        try:
            result = function(*args, **kwargs)
            return result
        finally:
            if before is not None:
                self.keep(before, result)

    def named(self, function: Any, args: tuple[Any, ...]) -> str | None:
        """Return the name of a function to record."""
        name, _ = self.functions.get(id(function), (None, None))
        if name is not None:
            return name if "builtins" not in name or any(map(is_array, args)) else None
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ufunc):
            path = f"numpy.{owner.__name__}.{function.__name__}"
            return path if path in self.of_ufuncs else None
        if isinstance(owner, np.ndarray | np.generic):
            called = getattr(function, "__name__", "")
            return f"ndarray.{called}" if called in self.methods else None
        return None

    def whole(self, function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, after the array of a method."""
        owner = getattr(function, "__self__", None)
        return (owner, *args) if isinstance(owner, np.ndarray | np.generic) else args

    def operate(self, name: str, *args: Any) -> Any:
        """Apply an operator."""
        function: Callable[..., Any] = getattr(operator, name)
        if not any(map(is_array, args)):
            return function(*args)
        before = self.taken(f"operator.{name}", args, {})
        result = None
        try:
            result = function(*args)
            return result
        finally:
            if before is not None:
                self.keep(before, result)

    def attribute(self, x: Any, name: str) -> Any:
        """Read an attribute."""
        result = getattr(x, name)
        if isinstance(x, np.ndarray):
            before = self.taken(f"ndarray.{name}", (x,), {})
            if before is not None:
                self.keep(before, result)
        return result

    def taken(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        """Return a call with copies of its arguments; None if it is left out."""
        if self.of_test[name] >= MOST or self.of_file[name] >= MOST_OF_FILE:
            self.recording.left_out["one of many like it"] += 1
            return None
        try:
            if kwargs.get("out") is not None:
                raise LeftOut("out=")
            given = {key: copied(x) for key, x in kwargs.items() if key != "out"}
            return Call(name, tuple([copied(x) for x in args]), given)
        except LeftOut as reason:
            self.recording.left_out[str(reason)] += 1
        return None

    def keep(self, call: Call, result: Any) -> None:
        """Record a call unless its result is large, or the call is not new."""
        if getattr(result, "nbytes", 0) > 4 * LARGEST:
            self.recording.left_out["a large result"] += 1
        elif (key := call.key) not in self.keys:
            self.keys.add(key)
            self.of_test[call.name] += 1
            self.of_file[call.name] += 1
            self.recording.calls.append(call)


class Changed(ast.NodeTransformer):
    """Passes what tests do with arrays to a recorder."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call, but for `super()` and the like, which look at their callers."""
        self.generic_visit(node)
        match node.func:
            case ast.Name("super" | "locals" | "globals" | "vars" | "dir" | "eval" | "exec"):
                return node
            case _:
                return _passed("call", node, [node.func, *node.args], node.keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """An operator of two operands."""
        self.generic_visit(node)
        name = ast.Constant(OPERATORS[type(node.op)])
        return _passed("operate", node, [name, node.left, node.right])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """An operator of one operand."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) or isinstance(node.operand, ast.Constant):
            return node
        return _passed("operate", node, [ast.Constant(OPERATORS[type(node.op)]), node.operand])

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """A comparison of two operands."""
        self.generic_visit(node)
        if len(node.ops) > 1 or type(node.ops[0]) not in OPERATORS:
            return node
        name = ast.Constant(OPERATORS[type(node.ops[0])])
        return _passed("operate", node, [name, node.left, node.comparators[0]])

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """A subscript that is read."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        index = node.slice
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if any(isinstance(each, ast.Starred) for each in parts):
            return node
        written = [_slice(each) if isinstance(each, ast.Slice) else each for each in parts]
        whole = ast.Tuple(written, ast.Load()) if isinstance(index, ast.Tuple) else written[0]
        return _passed("operate", node, [ast.Constant("getitem"), node.value, whole])

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """An attribute of arrays that is read."""
        self.generic_visit(node)
        if node.attr not in ATTRIBUTES or not isinstance(node.ctx, ast.Load):
            return node
        return _passed("attribute", node, [node.value, ast.Constant(node.attr)])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """An annotation stays."""
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """The body of a function: decorators and annotations are not calls of tests."""
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        """A pattern stays."""
        return node


def _slice(node: ast.Slice) -> ast.expr:
    parts: list[ast.expr] = [x or ast.Constant(None) for x in (node.lower, node.upper, node.step)]
    return ast.Call(ast.Name("slice", ast.Load()), parts, [])


def _passed(
    method: str, node: ast.expr, args: list[ast.expr], keywords: list[ast.keyword] | None = None
) -> ast.expr:
    recorder = ast.Name("__recorder__", ast.Load())
    made = ast.Call(ast.Attribute(recorder, method, ast.Load()), args, keywords or [])
    return ast.fix_missing_locations(ast.copy_location(made, node))


def change_tests(packages: Path) -> None:
    """Have the tests of packages loaded with changed sources from now on."""
    loader: Any = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self: Any, fullname: str) -> CodeType | None:
        path: str = self.path
        if not path.startswith(str(packages)) or "tests" not in Path(path).parts:
            code: CodeType | None = original(self, fullname)
            return code
        tree = Changed().visit(ast.parse(self.get_data(path)))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    loader.get_code = get_code


class Plugin:
    """Counts calls anew for each test, and stops in time."""

    def __init__(self, recorder: Recorder, seconds: float) -> None:
        self.recorder = recorder
        self.end = time.monotonic() + seconds

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin a test."""
        if time.monotonic() > self.end:
            pytest.exit("no time is left")
        self.recorder.of_test.clear()


def main() -> None:
    """Record what tests call, whatever becomes of them."""
    target, seconds, *tests = sys.argv[1:]
    recorder = Recorder()
    setattr(builtins, "__recorder__", recorder)  # noqa: B010  # the name that the texts use
    change_tests(PACKAGES)
    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "--assert=plain"]
    options += ["-p", "no:randomly", "-W", "ignore", "--rootdir", str(PACKAGES), "-c", os.devnull]
    options += ["-m", "not slow and not xslow"]
    paths = [str(PACKAGES / test) for test in tests]
    pytest.main([*options, *paths], plugins=[Plugin(recorder, float(seconds))])
    recorder.recording.save(Path(target))


def recorded(folder: Path, jobs: int = 2) -> Recording:
    """Return the calls of all tests; a file that did not run before has its own process."""
    folder.mkdir(parents=True, exist_ok=True)
    targets = {folder / f"{file.replace('/', '.')}.pickle": file for file in files(TESTS)}
    with ThreadPoolExecutor(jobs) as pool:
        missing = [(target, file) for target, file in targets.items() if not target.exists()]
        list(pool.map(lambda pair: record(pair[0], SECONDS, [pair[1]]), missing))
    whole = Recording()
    keys = set[bytes]()
    for target in targets:
        if not target.exists():
            whole.left_out["a file whose tests end the process"] += 1
            continue
        part = Recording.load(target)
        whole.left_out += part.left_out
        for call in part.calls:
            if (key := call.key) not in keys:
                keys.add(key)
                whole.calls.append(call)
    return whole


def files(tests: Mapping[str, str]) -> list[str]:
    """Return the files of tests that are installed, by their paths among the packages."""
    paths = [f"{where}/test_{name}.py" for where, names in tests.items() for name in names.split()]
    return [path for path in paths if (PACKAGES / path).exists()]


def record(target: Path, seconds: float, tests: Sequence[str]) -> None:
    """Run tests in a process, which writes to a file what they call."""
    command = [sys.executable, "-m", "tests.replay.recording", str(target), str(seconds), *tests]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            command,
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=3 * seconds + 60,
            check=False,
        )


if __name__ == "__main__":
    main()
