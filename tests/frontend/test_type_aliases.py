"""Applied types with a name: read from source and loaded, they say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Generic, Literal, NamedTuple, Optional, TypeVar

import numpy as np
import pytest
from jaxtyping import Float32
from pyrsistent import PMap, PVector, pmap, pvector

import pscdsl as psc
from pscdsl import Float, f32, i32
from pscdsl._src.checker.check import load_definition
from pscdsl.typing.diagnostics import Failure
from tests.support.projects import module_of

T = TypeVar("T", bound=psc.Tree[Float])


class Layer(psc.Record, dims="i o"):
    """A record with sizes."""

    w: f32["o i"]


class Two(NamedTuple, Generic[T]):
    """A generic named tuple."""

    left: T
    right: T


class State(psc.Record, Generic[T]):
    """A generic record."""

    value: T
    step: i32


Vector = f32["n"]
Reals = Float["*b n"]
Square = Layer["n n"]
Foreign = Float32[np.ndarray, "n m"]
Nested = Float32[Foreign, "b"]
Pair = tuple[Vector, Layer["n m"]]
Many = tuple[Vector, ...]
Nothing = tuple[()]
Rows = PVector[Vector]
Named = PMap[str, Vector]
Inner = State[Square]
Both = Two[Vector]
Mode = psc.Static[Literal["a", "b"]]
Noted = Annotated[f32["*b n"], "a note"]
Maybe = Optional[Vector]  # noqa: UP045


@psc.kernel
def arrays(x: Vector, y: Reals, z: Noted) -> tuple[Vector, Reals]:
    """Arrays."""
    return x + 0 * z.sum(), 2 * y


@psc.kernel
def foreign(x: Foreign, y: Nested) -> Nested:
    """Of jaxtyping."""
    return y + x  # type: ignore[no-any-return]


@psc.kernel
def records(x: Square, y: Inner, z: Both) -> tuple[Square, Inner, Both]:
    """Records, generic ones too."""
    return x, Inner(x, y.step), Both(z.right, z.left)


@psc.kernel
def containers(p: Pair, many: Many, none: Nothing, rows: Rows, named: Named) -> Pair:
    """Tuples, vectors and maps."""
    return p[0] + rows[0] + named["a"], p[1]


@psc.kernel
def others(x: Vector, mode: Mode, y: Maybe = None) -> Vector:
    """Static values, and what may be missing."""
    return x if mode == "a" or y is None else y


KERNELS = [arrays, foreign, records, containers, others]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_loaded_aliases_say_what_source_says(kernel: psc.Kernel[..., object]) -> None:
    static = load_definition(Path(__file__), kernel.name)
    assert str(kernel.signature) == str(static.signature)
    assert kernel.signature == static.signature


def test_calls() -> None:
    x = np.ones(2, np.float32)
    layer = Layer(w=np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(arrays(x, x, x)[1], 2 * x)
    assert foreign(layer.w, layer.w[None]).shape == (1, 2, 2)
    found = records(layer, State(value=layer, step=1), Two(x, 2 * x))
    assert isinstance(found[1], State)
    np.testing.assert_array_equal(found[2].left, 2 * x)
    total, _ = containers((x, layer), (x,), (), pvector([x]), pmap({"a": x}))
    np.testing.assert_array_equal(total, 3 * x)
    np.testing.assert_array_equal(others(x, "b", 2 * x), 2 * x)


Wrong = f32["n &"]


@psc.kernel
def wrong(x: Wrong) -> f32:
    """Never checked."""
    return x.sum()


def test_a_wrong_shape_is_told_where_it_is_used() -> None:
    with pytest.raises(psc.CheckError, match="annotation `n &`") as caught:
        wrong(np.ones(2))
    (finding,) = caught.value.diagnostics
    assert Path(finding.span.path).name == Path(__file__).name


SPELLINGS = """
from typing import Annotated, Generic, Literal, NamedTuple, Optional, TypeVar, Union
import numpy as np
from jaxtyping import Float32
import pscdsl as psc
from pscdsl import Float, f32

T = TypeVar("T", bound=psc.Tree[Float])

class Layer(psc.Record, dims="i o"):
    w: f32["o i"]

class Two(NamedTuple, Generic[T]):
    left: T
    right: T

Vector = f32["n"]
Foreign = Float32[np.ndarray, "n m"]
SIZES = "n m"
TEXT = "k"

def factory():
    Inner = Float32[np.ndarray, "n m"]
    Row = f32["n"]

    @psc.kernel
    def f(x: ANNOTATION) -> f32:
        return psc.tree.leaves(x)[0].sum()

    return f

f = factory()

@psc.kernel
def g(x: ANNOTATION) -> f32:
    return psc.tree.leaves(x)[0].sum()
"""


@pytest.mark.parametrize(
    ("annotation", "meant"),
    [
        ('Two["Vector"]', "Two[f32[n]]"),
        ('Optional["Vector"]', "f32[n] | None"),
        ("Union[None, Vector]", "f32[n] | None"),
        ("Layer[SIZES]", "Layer[n m]"),
        ("f32[SIZES]", "f32[n m]"),
        ("f32[3]", "f32[3]"),
        ('Float32[Foreign, "b"]', "f32[b n m]"),
        ("Float32[np.ndarray, TEXT]", "f32[k]"),
        ("Annotated[Annotated[Vector, SIZES], 1]", "f32[n]"),
        ('tuple[Two["Vector"], ...]', "tuple[Two[f32[n]], ...]"),
        ('psc.Static[Literal["a", "b"]]', 'Static[Literal["a", "b"]]'),
    ],
)
def test_annotations_that_are_evaluated_say_what_source_says(
    annotation: str, meant: str, tmp_path: Path
) -> None:
    path = tmp_path / f"spellings_{abs(hash(annotation))}.py"
    path.write_text(SPELLINGS.replace("ANNOTATION", annotation), encoding="utf-8")
    module = module_of(path, path.stem)
    for kernel in module.f, module.g:
        assert str(kernel.signature.parameters[0].spec) == meant
    assert str(load_definition(path, "g").signature.parameters[0].spec) == meant


@pytest.mark.parametrize(
    ("annotation", "meant"),
    [
        ('Float32[Inner, "b"]', "f32[b n m]"),
        ("Two[Row]", "Two[f32[n]]"),
        ("Optional[Row]", "f32[n] | None"),
        ("Row | None", "f32[n] | None"),
    ],
)
def test_annotations_hold_what_only_they_name(annotation: str, meant: str, tmp_path: Path) -> None:
    path = tmp_path / f"held_{abs(hash(annotation))}.py"
    text = SPELLINGS.partition("@psc.kernel\ndef g")[0].replace("ANNOTATION", annotation)
    path.write_text(text, encoding="utf-8")
    assert str(module_of(path, path.stem).f.signature.parameters[0].spec) == meant


def test_a_generic_alias_of_numpy_is_refused_as_in_source(tmp_path: Path) -> None:
    path = tmp_path / "generic_alias.py"
    text = SPELLINGS.replace("ANNOTATION", "NDArray[np.float32]")
    path.write_text("from numpy.typing import NDArray\n" + text, encoding="utf-8")
    for kernel in module_of(path, path.stem).g, load_definition(path, "g"):
        with pytest.raises((psc.CheckError, Failure), match="is not a type of arrays"):
            _ = kernel.signature


def test_a_literal_that_was_changed_before_it_was_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "changed_literal.py"
    text = SPELLINGS.replace("ANNOTATION", 'psc.Static[Literal["a", "b"]]')
    path.write_text(text, encoding="utf-8")
    module = module_of(path, path.stem)
    path.write_text(text.replace('"b"', '"c"'), encoding="utf-8")
    with pytest.raises(psc.CheckError, match="is not what its text says"):
        _ = module.g.signature
