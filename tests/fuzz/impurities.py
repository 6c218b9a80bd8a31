"""Statements that no pure function has; wherever one stands in a kernel, the kernel is refused.

`{x}` stands for an array in reach.
"""

from __future__ import annotations

import ast
import random

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
    ("a setting of NumPy", "np.seterr(all='ignore')"),
    ("a function that is loaded from a file", 'data = np.load("data.npy")'),
    ("np.save", 'np.save("data.npy", {x})'),
)


def with_impurity(text: str, rng: random.Random) -> tuple[str, str] | None:
    """A program with one impurity at a place that is elaborated; what it is, and the text."""
    tree = ast.parse(text)
    places: list[tuple[list[ast.stmt], int, list[str]]] = []

    def visit(function: ast.FunctionDef) -> None:
        spec = function.args
        names = [each.arg for each in spec.args]
        body = function.body
        for index, statement in enumerate(body):
            places.append((body, index, names))
            if isinstance(statement, ast.FunctionDef):
                visit(statement)

    for node in elaborated(tree):
        visit(node)
    if not places:
        return None
    body, index, names = rng.choice(places)
    kind, line = rng.choice(IMPURITIES)
    body[index:index] = ast.parse(line.replace("{x}", rng.choice(names or ["TABLE"]))).body
    tree.body[0:0] = ast.parse(STATE).body
    return kind, ast.unparse(tree) + "\n"


def elaborated(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions of a module that are kernels, or that these mention, directly or not."""
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    due = [each for each in functions.values() if each.decorator_list]
    found: list[ast.FunctionDef] = []
    while due:
        function = due.pop()
        if function in found:
            continue
        found.append(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in functions:
                due.append(functions[node.id])
    return sorted(found, key=lambda each: each.lineno)
