"""What programs were made of: operations, and the dtypes and kinds of shapes of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from tests.differential.formats import DTYPES, NAMES
from tests.differential.programs import Kernel, Program

KINDS: Final = ("8 axes", "7 axes", "5, 6 axes", "near 2^15", "near 2^14", "odd", "even", "scalar")
"""Of shapes; the first that holds for one of an operation's arrays."""
_NAME: Final = re.compile(
    r"(?:np|psc)\.(?:linalg\.)?\w+|\.astype|\.T\b|\.reshape|\[|[-+*/%&|^~@<>=!]+(?=[ \w(])"
)
_VALUES: Final = frozenset(
    f"np.{name}" for name in ("nan", "inf", *[dtype.name for dtype in DTYPES.values()])
)
_WORD: Final = re.compile(r"\b(?:x|p\d+_)\d+\b")


def covered(kernel: Kernel, programs: Iterable[Program]) -> Counter[str]:
    """How often each operation stands with a dtype (of the result) and a kind of shape."""
    found: Counter[str] = Counter()
    for program in programs:
        shapes = {name: array.shape for name, array in kernel.arguments}
        for line, step in zip(program.lines, program.steps, strict=True):
            written = line.split(" = ", 1)[1]
            used = [shapes[word] for word in _WORD.findall(written) if word in shapes]
            kind = kind_of([*used, step.shape])
            for name in operations(written):
                found[f"{name} {step.dtype} {kind.replace(' ', '_')}"] += 1
            shapes[step.text] = step.shape
    return found


def operations(written: str) -> set[str]:
    """The names of functions and operators in an expression."""
    found = set(_NAME.findall(written)) - _VALUES - {"psc.bf16", "="}
    return {"indexing" if name == "[" else name.lstrip(".") for name in found}


def kind_of(shapes: Iterable[tuple[int, ...]]) -> str:
    """The most awkward kind that one of these shapes is of."""
    return min((_kind(shape) for shape in shapes), key=KINDS.index)


def _kind(shape: tuple[int, ...]) -> str:
    largest = max(shape, default=0)
    if len(shape) >= 7:
        return f"{len(shape)} axes"
    if len(shape) >= 5:
        return "5, 6 axes"
    if largest > 16000:
        return "near 2^15" if largest > 30000 else "near 2^14"
    return ("odd" if any(size % 2 for size in shape) else "even") if shape else "scalar"


def table(counts: Mapping[str, int]) -> str:
    """One line an operation: how often it was tried with each dtype, and each kind of shape."""
    by_name: dict[str, Counter[str]] = {}
    for key, count in counts.items():
        name, dtype, kind = key.split(" ")
        of_name = by_name.setdefault(name, Counter())
        of_name[dtype] += count
        of_name[kind.replace("_", " ")] += count
    columns = [*NAMES.values(), *KINDS]
    lines = [" " * 18 + "".join(f"{column:>10}" for column in columns)]
    for name in sorted(by_name):
        numbers = "".join(f"{by_name[name][column] or '.':>10}" for column in columns)
        lines.append(f"{name:18}{numbers}")
    return "\n".join(lines)
