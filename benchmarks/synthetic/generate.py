"""Writes the project: packages of modules of kernels, with helpers and records of their own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.synthetic.templates import CALLER, HELPERS, KERNELS, MODULE, RECORDS

TOPICS = "vision speech control finance weather genome market traffic energy climate".split()
ACTIVATIONS = ("sigmoid", "swish", "softsign", "np.tanh")


@dataclass(frozen=True)
class Module:
    """One file: its package, its place among the modules of the package, and its text."""

    package: str
    index: int
    text: str

    @property
    def path(self) -> str:
        """Where it is written."""
        return f"{self.package}/m{self.index:02}.py"


def write(folder: Path, kernels: int = 1000, seed: int = 0) -> list[Path]:
    """Write a project with this many kernels; the files in which they are, in order."""
    root = folder / "lab"
    paths: list[Path] = []
    for package in TOPICS:
        (root / package).mkdir(parents=True, exist_ok=True)
        numbers = random.Random(f"{seed} {package}")
        (root / package / "helpers.py").write_text(HELPERS.format(large=_large(numbers)))
        (root / package / "records.py").write_text(RECORDS)
        (root / package / "__init__.py").write_text(
            f'"""Everything about {package}."""\n\n'
            "from .helpers import *\nfrom .m00 import moments_00 as moments\n"
        )
    (root / "__init__.py").write_text('"""A laboratory."""\n')
    for module in modules(kernels, seed):
        path = root / module.path
        path.write_text(module.text)
        paths.append(path)
    return paths


def modules(kernels: int, seed: int) -> Iterator[Module]:
    """The modules of kernels; each also calls kernels of two others."""
    each = len(KERNELS) + 1
    count = -(-kernels // each)
    left = kernels
    for number in range(count):
        package, index = TOPICS[number % len(TOPICS)], number // len(TOPICS)
        numbers = random.Random(f"{seed} {number}")
        names = list(KERNELS)
        numbers.shuffle(names)
        names = ["moments", *(name for name in names if name != "moments")]
        yield _module(package, index, names[: min(left, each - 1)], left >= each, numbers)
        left -= each


def _module(
    package: str, index: int, names: list[str], calls: bool, numbers: random.Random
) -> Module:
    made = [f"{name}_{index:02}" for name in names]
    body = [
        KERNELS[name].format(name=full, **_choices(numbers))
        for name, full in zip(names, made, strict=True)
    ]
    imports = [
        "",
        "from .helpers import LIMIT, clipped, sigmoid, softsign, swish, weighted_mean",
        "from .records import Belief, Cell, Dense, Moments",
    ]
    if calls:
        other = numbers.choice([topic for topic in TOPICS if topic != package])
        first = f"moments_{index:02}"
        if index:
            first = f"moments_{index - 1:02}"
            imports.insert(2, f"from .m{index - 1:02} import {first}")
        imports.insert(1, f"from .. import {other}")
        made.append(f"summary_{index:02}")
        body.append(
            CALLER.format(
                name=made[-1], first=first, second=f"{other}.moments", **_choices(numbers)
            )
        )
    text = MODULE.format(
        topic=f"{package}, part {index}",
        imports="\n".join(imports) + "\n",
        exports=f"[{', '.join(map(_quoted, sorted(made)))}]",
        body="\n".join(body),
    )
    return Module(package, index, text)


def _quoted(name: str) -> str:
    return f'"{name}"'


def _large(numbers: random.Random) -> float:
    return float(numbers.randrange(3, 30))


def _choices(numbers: random.Random) -> dict[str, object]:
    """The numbers and functions that one kernel uses."""
    return {
        "activation": numbers.choice(ACTIVATIONS),
        "small": f"1e-{numbers.randrange(3, 8)}",
        "large": _large(numbers),
        "floor": -float(numbers.randrange(100, 1000)),
        "fraction": round(numbers.uniform(0.1, 0.9), 3),
        "power": numbers.randrange(2, 5),
        "count": numbers.randrange(10, 100),
    }
