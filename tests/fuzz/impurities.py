"""Statements that no pure function has; wherever one stands in a kernel, the kernel is refused.

`{x}` stands for an array in reach.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence

from tests.fuzz.mutants import is_kernel

STATE = """\
import datetime
import logging
import os
import random
import subprocess
import sys
import time
import warnings

COUNT = 0
LOG = []
LOOKUP = {"a": 1.0}
CHANGING = [1.0]
ROWS = iter([1.0, 2.0])


def change():
    CHANGING.append(2.0)


def shout(value):
    print(value)
    return value


say = print
"""

IMPURITIES: tuple[tuple[str, str], ...] = (
    ("print", 'print("here")'),
    ("print an array", "print({x})"),
    ("print through an alias", "say({x})"),
    ("print through a helper", "{x}_seen = shout({x})"),
    ("write to a global", "global COUNT\nCOUNT = COUNT + 1"),
    ("append to a global", "LOG.append(1)"),
    ("write to a global dict", 'LOOKUP["a"] = 2.0'),
    ("read a global that is written", "changing = CHANGING[0]"),
    ("advance an iterator", "row = next(ROWS)"),
    ("the clock", "now = time.time()"),
    ("the date", "today = datetime.datetime.now()"),
    ("np.random", "noise = np.random.rand()"),
    ("np.random with a seed", "np.random.seed(0)"),
    ("random", "noise = random.random()"),
    ("the environment", 'home = os.environ["HOME"]'),
    ("getenv", 'home = os.getenv("HOME")'),
    ("the process", "pid = os.getpid()"),
    ("a file", 'text = open("data.txt").read()'),
    ("standard output", 'sys.stdout.write("here")'),
    ("the console", "answer = input()"),
    ("a warning", 'warnings.warn("here")'),
    ("a log", 'logging.info("here")'),
    ("a subprocess", 'subprocess.run(["ls"])'),
    ("assignment to an element", "{x}[...] = 1"),
    ("augmented assignment to an element", "{x}[...] += 1"),
    ("assignment to an element of a global", "TABLE[0] = 1"),
    ("sorting in place", "{x}.sort()"),
    ("filling in place", "{x}.fill(0)"),
    ("np.copyto", "np.copyto({x}, 0)"),
    ("np.put", "np.put({x}, 0, 0)"),
    ("out=", "np.exp({x}, out={x})"),
    ("ufunc.at", "np.add.at({x}, 0, 1)"),
    ("setattr", 'setattr(psc, "flag", 1)'),
    ("assignment to an attribute", "psc.flag = 1"),
    ("del", "del {x}\ngone = {x}"),
    ("exec", 'exec("COUNT = 1")'),
    ("eval", 'one = eval("1")'),
    ("globals", 'globals()["COUNT"] = 1'),
    ("an import by name", 'module = __import__("os")'),
    ("id", "number = id({x})"),
    ("yield", "yield {x}"),
    ("with a file", 'with open("data.txt") as file:\n    pass'),
    ("a setting of NumPy", "np.seterr(all='raise')"),
    ("a function that is loaded from a file", 'data = np.load("data.npy")'),
    ("np.save", 'np.save("data.npy", {x})'),
)


def with_impurity(text: str, rng: random.Random) -> tuple[str, str] | None:
    """A program with one impurity at a place that is elaborated; what it is, and the text."""
    tree = ast.parse(text)
    places = [place for function in elaborated(tree) for place in places_in(function)]
    if not places:
        return None
    body, index, names = rng.choice(places)
    kind, line = rng.choice(IMPURITIES)
    body[index:index] = ast.parse(line.replace("{x}", rng.choice(names or ["TABLE"]))).body
    tree.body[0:0] = ast.parse(STATE).body
    return kind, ast.unparse(tree) + "\n"


Place = tuple[list[ast.stmt], int, list[str]]
"""A body, an index in it, and names of parameters that are in reach there."""


def places_in(function: ast.FunctionDef) -> Iterator[Place]:
    """The places between the statements of a function that runs, and of those inside of it."""
    names = [each.arg for each in function.args.args]
    mentioned = {node.id for node in always(function.body) if isinstance(node, ast.Name)}
    for index, statement in enumerate(function.body):
        yield function.body, index, names
        if isinstance(statement, ast.FunctionDef):
            # Rules for derivatives are read when a derivative is asked for.
            if statement.name in mentioned and not statement.decorator_list:
                yield from places_in(statement)
        elif not isinstance(statement, ast.Return) and returns(statement):
            return  # what follows may run for no choice at all


def returns(statement: ast.stmt) -> bool:
    """Whether a function may return within a statement."""
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))


CONDITIONAL = (ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.For, ast.comprehension, ast.Compare)
"""What is inside of these may be skipped while checking, as Python skips it."""


def always(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes that are elaborated whenever these statements are, up to an early return."""
    for statement in body:
        if not isinstance(statement, ast.FunctionDef):
            yield from _unconditional(statement)
            if returns(statement):
                return


def _unconditional(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, CONDITIONAL):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _unconditional(child)


def elaborated(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions of a module that are kernels, or that these mention, directly or not."""
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    due = [each for each in functions.values() if is_kernel(each)]
    found: list[ast.FunctionDef] = []
    while due:
        function = due.pop()
        if function in found:
            continue
        found.append(function)
        for node in _mentions(function):
            if isinstance(node, ast.Name) and node.id in functions:
                due.append(functions[node.id])
    return sorted(found, key=lambda each: each.lineno)


def _mentions(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What a function, and those inside of it that it mentions, always elaborate."""
    nodes = list(always(function.body))
    yield from nodes
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    for each in function.body:
        if isinstance(each, ast.FunctionDef) and each.name in names and not each.decorator_list:
            yield from _mentions(each)
