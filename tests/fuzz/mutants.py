"""Mutants of accepted programs: one small change of the text each."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

DTYPES = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u32", "bool_", "c64")
NUMPY = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool_", "complex64")
TRANSPOSING = ("transpose", "swapaxes", "reshape", "ravel", "expand_dims", "squeeze", "astype")
PAIRS: tuple[tuple[str, str], ...] = (
    ("sin", "cos"),
    ("maximum", "minimum"),
    ("sum", "mean"),
    ("argmax", "argmin"),
    ("max", "min"),
    ("any", "all"),
    ("tril", "triu"),
    ("cumsum", "cumprod"),
    ("floor", "ceil"),
    ("prod", "sum"),
    ("sort", "argsort"),
    ("exp", "log"),
)
OTHER = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
OPERATORS: tuple[type[ast.operator], ...] = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.BitAnd,
)  # fmt: skip
COMPARISONS: tuple[type[ast.cmpop], ...] = (ast.Lt, ast.LtE, ast.Gt, ast.Eq, ast.NotEq)

Edit = Callable[[], None]
"""Changes the tree in place."""


@dataclass(frozen=True)
class Mutant:
    """A changed program."""

    kind: str
    text: str


def is_kernel(function: ast.FunctionDef) -> bool:
    """Whether a function is decorated as a kernel."""
    return any(ast.unparse(each) == "psc.kernel" for each in function.decorator_list)


class Sites:
    """The places of a tree where a kind of change is possible."""

    def __init__(self, tree: ast.Module, rng: random.Random) -> None:
        self.tree = tree
        self.rng = rng
        self.functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        self.kernels = [f for f in self.functions if is_kernel(f)]
        self.code = [n for f in self.functions for s in f.body for n in ast.walk(s)]

    # Signatures.

    def annotations(self, results: bool) -> Iterator[tuple[ast.expr, Callable[[ast.expr], None]]]:
        """Every annotation of a kernel, with what replaces it."""
        for kernel in self.kernels:
            if results:
                if kernel.returns is not None:
                    yield kernel.returns, lambda new, f=kernel: setattr(f, "returns", new)  # type: ignore[misc]
                continue
            for each in kernel.args.args:
                if each.annotation is not None:
                    yield each.annotation, lambda new, a=each: setattr(a, "annotation", new)  # type: ignore[misc]

    def shapes(self, results: bool) -> Iterator[ast.Constant]:
        """The strings with shapes."""
        for annotation, _ in self.annotations(results):
            for node in ast.walk(annotation):
                if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                    if isinstance(node.slice.value, str) and "Literal" not in ast.dump(node):
                        yield node.slice

    def shape(self, change: Callable[[list[str]], None], results: bool = False) -> Iterator[Edit]:
        """A change of the sizes of one shape."""
        for constant in self.shapes(results):

            def edit(constant: ast.Constant = constant) -> None:
                dims = str(constant.value).split()
                change(dims)
                constant.value = " ".join(dims)

            yield edit

    def another(self, dims: list[str]) -> None:
        """Another size."""
        if dims:
            options = ["n", "m", "k", "n+1", "2*n", "1", "2", "3", "n-1", "m+1"]
            dims[self.rng.randrange(len(dims))] = self.rng.choice(options)

    def swapped(self, dims: list[str]) -> None:
        """Sizes in another order."""
        self.rng.shuffle(dims)

    def fewer(self, dims: list[str]) -> None:
        """An axis less."""
        if dims:
            dims.pop(self.rng.randrange(len(dims)))

    def more(self, dims: list[str]) -> None:
        """An axis more."""
        at = self.rng.randrange(len(dims) + 1)
        dims.insert(at, self.rng.choice(["n", "1", "2", "m"]))

    def dtypes(self, results: bool) -> Iterator[Edit]:
        """Another dtype in a signature."""
        for annotation, _ in self.annotations(results):
            for node in ast.walk(annotation):
                if isinstance(node, ast.Name) and node.id in (*DTYPES, "Float", "Int", "UInt"):
                    yield lambda n=node: setattr(n, "id", self.rng.choice(DTYPES))  # type: ignore[misc]

    # Code.

    def casts(self) -> Iterator[Edit]:
        """Another dtype in the code."""
        for node in self.code:
            if isinstance(node, ast.Attribute) and node.attr in NUMPY:
                yield lambda n=node: setattr(n, "attr", self.rng.choice(NUMPY))  # type: ignore[misc]

    def operands(self) -> Iterator[Edit]:
        """Operands or arguments in another order."""
        for node in self.code:
            if isinstance(node, ast.BinOp):

                def swap(n: ast.BinOp = node) -> None:
                    n.left, n.right = n.right, n.left

                yield swap
            if isinstance(node, ast.Call) and len(node.args) >= 2:

                def exchange(n: ast.Call = node) -> None:
                    i, j = self.rng.sample(range(len(n.args)), 2)
                    n.args[i], n.args[j] = n.args[j], n.args[i]

                yield exchange

    def operators(self) -> Iterator[Edit]:
        """Another operator."""
        for node in self.code:
            if isinstance(node, ast.BinOp):
                yield lambda n=node: setattr(n, "op", self.rng.choice(OPERATORS)())  # type: ignore[misc]
            if isinstance(node, ast.Compare):
                yield lambda n=node: setattr(n, "ops", [self.rng.choice(COMPARISONS)()])  # type: ignore[misc]

    def functions_called(self) -> Iterator[Edit]:
        """Another function of the library."""
        for node in self.code:
            if isinstance(node, ast.Attribute) and node.attr in OTHER:
                yield lambda n=node: setattr(n, "attr", OTHER[n.attr])  # type: ignore[misc]

    def axes(self) -> Iterator[Edit]:
        """Another axis, or none."""
        for node in self.code:
            if isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg == "axis":

                        def edit(n: ast.Call = node, k: ast.keyword = keyword) -> None:
                            if self.rng.random() < 0.3:
                                n.keywords.remove(k)
                            else:
                                axis = self.rng.choice("0 1 -1 -2 2".split())
                                k.value = ast.parse(axis, mode="eval").body

                        yield edit

    def numbers(self) -> Iterator[Edit]:
        """A number that is one off."""
        for node in self.code:
            if isinstance(node, ast.Constant) and type(node.value) is int:
                value = node.value
                yield lambda n=node, v=value: setattr(n, "value", v + self.rng.choice((-1, 1)))  # type: ignore[misc]

    def transposes(self) -> Iterator[Edit]:
        """Without a transposition, reshape or cast."""
        for node in self.code:
            for name, child in ast.iter_fields(node):
                if isinstance(child, ast.Attribute) and child.attr == "T":
                    yield lambda n=node, f=name, c=child: setattr(n, f, c.value)  # type: ignore[misc]
                if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
                    func = child.func
                    if func.attr in TRANSPOSING:
                        of = func.value
                        if isinstance(of, ast.Name) and of.id == "np" and child.args:
                            of = child.args[0]
                        yield lambda n=node, f=name, c=of: setattr(n, f, c)  # type: ignore[misc]

    def names(self) -> list[ast.Name]:
        """The places where local values are read."""
        local = {
            n.id for n in self.code if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        } | {a.arg for f in self.functions for a in f.args.args}
        return [
            n
            for n in self.code
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in local
        ]

    def undefined(self) -> Iterator[Edit]:
        """A name that does not exist."""
        for node in self.names():
            yield lambda n=node: setattr(n, "id", "undefined")  # type: ignore[misc]

    def other_names(self) -> Iterator[Edit]:
        """Another value."""
        names = sorted({node.id for node in self.names()})
        for node in self.names():
            yield lambda n=node: setattr(n, "id", self.rng.choice(names))  # type: ignore[misc]

    def asserts(self) -> Iterator[Edit]:
        """Without an assertion."""
        yield from self.deletions(lambda statement: isinstance(statement, ast.Assert))

    def statements(self) -> Iterator[Edit]:
        """Without a statement."""
        yield from self.deletions(lambda statement: not isinstance(statement, ast.Assert))

    def deletions(self, which: Callable[[ast.stmt], bool]) -> Iterator[Edit]:
        """Without one of these statements."""
        for node in [*self.functions, *self.code]:
            if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While | ast.With):
                for statement in node.body:
                    if which(statement):

                        def edit(body: list[ast.stmt] = node.body, s: ast.stmt = statement) -> None:
                            body[body.index(s)] = ast.Pass()

                        yield edit

    def carries(self) -> Iterator[Edit]:
        """Another initial value of a loop's carry."""
        for node in self.code:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                at = {"scan": 1, "while_loop": 2, "fori_loop": 3}.get(node.func.attr)
                if at is not None and len(node.args) > at:
                    yield lambda n=node, at=at: self._wrapped(n.args, at)  # type: ignore[misc]

    def _wrapped(self, items: list[ast.expr], index: int) -> None:
        value = items[index]
        if isinstance(value, ast.Tuple) and self.rng.random() < 0.8:
            self._wrapped(value.elts, self.rng.randrange(len(value.elts)))
            return
        items[index] = self._other(value)

    def _other(self, value: ast.expr) -> ast.expr:
        text = ast.unparse(value)
        options = (
            "{}.astype(np.float64) {}.astype(np.int32) {}[None] {}[0] {}.sum() {}.T ({},{}) 0 0.5 "
            "np.zeros_like({}) None"
        ).split()
        new = ast.parse(self.rng.choice(options).replace("{}", f"({text})"), mode="eval")
        return new.body

    def branches(self) -> Iterator[Edit]:
        """Another result of a nested function."""
        for function in self.functions:
            for statement in function.body:
                if isinstance(statement, ast.Return) and statement.value is not None:

                    def edit(s: ast.Return = statement) -> None:
                        assert s.value is not None
                        if isinstance(s.value, ast.Tuple):
                            self._wrapped(s.value.elts, self.rng.randrange(len(s.value.elts)))
                        else:
                            s.value = self._other(s.value)

                    yield edit


def kinds(sites: Sites) -> dict[str, Callable[[], Iterator[Edit]]]:
    """Every kind of change."""
    return {
        "another size": lambda: sites.shape(sites.another),
        "sizes swapped": lambda: sites.shape(sites.swapped),
        "an axis less": lambda: sites.shape(sites.fewer),
        "an axis more": lambda: sites.shape(sites.more),
        "another dtype": lambda: sites.dtypes(False),
        "another result's size": lambda: sites.shape(sites.another, True),
        "another result's rank": lambda: sites.shape(sites.fewer, True),
        "another result's dtype": lambda: sites.dtypes(True),
        "another cast": sites.casts,
        "operands swapped": sites.operands,
        "another operator": sites.operators,
        "another function": sites.functions_called,
        "another axis": sites.axes,
        "off by one": sites.numbers,
        "a reshape dropped": sites.transposes,
        "another initial carry": sites.carries,
        "another branch": sites.branches,
        "an assertion dropped": sites.asserts,
        "a statement dropped": sites.statements,
        "an undefined name": sites.undefined,
        "another name": sites.other_names,
    }


KINDS = tuple(kinds(Sites(ast.Module([], []), random.Random(0))))


def mutant(text: str, rng: random.Random, kind: str) -> Mutant | None:
    """A program with one change of a kind; None where there is no place for it."""
    tree = copy.deepcopy(ast.parse(text))
    edits = list(kinds(Sites(tree, rng))[kind]())
    if not edits:
        return None
    rng.choice(edits)()
    changed = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    if changed == ast.unparse(ast.parse(text)) + "\n":
        return None
    return Mutant(kind, changed)
