"""What notebooks show of results, records, kernels and programs."""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.notebook import pictures
from pscdsl._src.xla.runtime.devices import put

VOID = {"img"}


class Reader(HTMLParser):
    """Reads HTML: its text, and the attributes of its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.met: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element, which is open from here on."""
        self.met.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element without content."""
        self.met.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.text += data


def read(value: Any) -> Reader:
    """The HTML of a value, which is closed, self-contained and without script."""
    html = value._repr_html_()
    found = Reader()
    found.feed(html)
    found.close()
    assert not found.open
    for tag, attributes in found.met:
        assert tag not in ("script", "style", "link", "iframe")
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("src") or "data:").startswith("data:")
    return found


def tags(value: Any) -> list[str]:
    """The elements of the HTML of a value."""
    return [tag for tag, _ in read(value).met]


def pixels(html: str) -> np.ndarray[Any, Any]:
    """The picture in a text, read with nothing but the format's definition."""
    found = re.search(r'base64,([^"]+)"', html)
    assert found is not None
    data = b64decode(found[1])
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    size = int.from_bytes(data[33:37], "big")
    assert data[37:41] == b"IDAT"
    raw = np.frombuffer(zlib.decompress(data[41 : 41 + size]), np.uint8)
    return raw.reshape(height, 1 + 3 * width)[:, 1:].reshape(height, width, 3)


DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", ml_dtypes.bfloat16),
)
SHAPES = ((), (0,), (1,), (7,), (500,), (0, 3), (1, 1), (3, 4), (100, 70), (2, 3, 4))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_arrays_of_all_kinds(dtype: Any, shape: tuple[int, ...]) -> None:
    array = put((np.arange(int(np.prod(shape))) % 5).reshape(shape).astype(dtype))
    found = read(array)
    assert f"pscdsl.Array {array.dtype} {shape}" in found.text
    elements = [tag for tag, _ in found.met]
    assert ("svg" in elements) is (len(shape) == 1 and array.size > 0)
    assert ("img" in elements) is (len(shape) == 2 and array.size > 0)
    assert ("no elements" in found.text) is (array.size == 0)


def test_numbers_of_a_random_key() -> None:
    @psc.kernel
    def split(key: psc.Key) -> psc.Key["3"]:
        return psc.random.split(key, 3)

    assert "uint32 (3, 2)" in read(split(psc.random.key(0))).text


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_one_nan_or_infinity_among_many_is_marked(dtype: str) -> None:
    values = np.ones((300, 300), dtype)
    values[200, 100], values[7, 8], values[8, 7] = np.nan, np.inf, np.inf
    text = read(put(values)).text
    assert "1 NaN" in text
    assert "2 +inf" in text
    image = pixels(put(values)._repr_html_())
    assert image.shape == (64, 64, 3)
    assert (image[200 * 64 // 300, 100 * 64 // 300] == (0xE0, 0x31, 0x31)).all()
    marked = (image != image[0, 0]).any(axis=-1)
    assert marked.sum() <= 3
    line = put(values.ravel())
    assert "1 NaN" in read(line).text
    assert "2 +inf" in read(line).text
    assert "#e03131" in line._repr_html_()


def test_nothing_but_nan() -> None:
    text = read(put(np.full((3, 2), np.nan))).text
    assert "no finite elements" in text
    assert "6 NaN" in text


def test_extreme_numbers() -> None:
    largest = np.finfo(np.float64).max
    with np.errstate(all="raise"):
        found = read(put(np.array([-largest, largest, 5e-324])))
    assert "-1.79769e+308 to 1.79769e+308" in found.text
    assert "nan" not in str(found.met)
    whole = read(put(np.array([7, 2**63 - 1]))).text
    assert "7 to 9223372036854775807" in whole


def test_truth_values_are_counted() -> None:
    assert "2 of 3 true" in read(put(np.array([True, False, True]))).text


def test_a_heat_map_orders_values_by_colour() -> None:
    image = pixels(put(np.arange(6.0).reshape(2, 3))._repr_html_()).reshape(6, 3)
    assert image[0].tolist() == [68, 1, 84]
    assert image[-1].tolist() == [253, 231, 37]
    assert (np.diff(image[:, 1].astype(int)) > 0).all()


@pytest.mark.parametrize("shape", [(1, 1), (64, 64), (65, 3), (1000, 1), (130, 200)])
def test_the_cells_of_a_grid_hold_every_element_once(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    values[0, 0] = np.nan
    values[-1, -1] = -np.inf
    found = pictures.grid(values, (64, 64))
    rows, columns = min(shape[0], 64), min(shape[1], 64)
    assert found.mean.shape == (rows, columns)
    for row in range(rows):
        for column in range(columns):
            part = values[
                row * shape[0] // rows : (row + 1) * shape[0] // rows,
                column * shape[1] // columns : (column + 1) * shape[1] // columns,
            ]
            finite = part[np.isfinite(part)]
            if finite.size:
                assert found.mean[row, column] == pytest.approx(finite.mean())
                assert found.low[row, column] == finite.min()
                assert found.high[row, column] == finite.max()
            assert found.nans[row, column] == np.isnan(part).sum()
            assert found.below[row, column] == np.isneginf(part).sum()


def test_a_long_array_has_a_short_text() -> None:
    assert len(put(np.random.default_rng(0).normal(size=200_000))._repr_html_()) < 20_000


def test_a_donated_array() -> None:
    given: Any = put(np.ones(3, np.float32))
    given.delete()
    assert "pscdsl.Array(<donated>, shape=(3,), dtype=float32)" in read(given).text


class Layer(psc.Record):
    """A record of arrays."""

    w: f32["a b"]
    b: f32 = 0.5


class Model(psc.Record):
    """A record of records."""

    first: Layer
    rest: tuple[Layer, ...]
    more: dict[str, f32]
    name: psc.Static[str] = "<script>alert(1)</script>"


def test_a_record_is_a_tree() -> None:
    layer = Layer(put(np.ones((2, 3), np.float32)))
    found = read(Model(layer, (layer, layer), {"</pre>": np.float32(2)}))
    elements = [tag for tag, _ in found.met]
    assert elements.count("details") >= 6
    assert elements.count("img") == 3
    assert "w: float32 (2, 3)" in found.text
    assert "'<script>alert(1)</script>'" in found.text
    assert "'</pre>'" in found.text


def test_a_record_that_holds_itself_ends() -> None:
    inner: list[Any] = []
    inner.append(inner)
    assert "list" in read(Layer(inner)).text  # pyright: ignore[reportArgumentType]


@psc.kernel
def helper(x: f32["n"]) -> f32["n"]:
    """A kernel that others call."""
    return np.exp(x) * 2


@psc.kernel
def kernel(x: f32["n"]) -> f32["n"]:
    """A kernel with a loop."""
    total = helper(x)
    for _ in range(100):
        total = total + helper(total)
    return total


@psc.kernel
def mistaken(x: f32["n k"], y: f32["m k"]) -> f32["n m"]:
    """A kernel with an error."""
    return x @ y


@psc.kernel
def unreadable(x: f32["n +"]) -> f32:
    """A kernel without a signature."""
    return x.sum()


def test_a_kernel_shows_types_findings_and_cost() -> None:
    found = read(helper).text
    assert "helper(x: f32[n]) -> f32[n]" in found
    assert "no findings" in found
    assert "9*n" in found


@pytest.mark.parametrize(("wrong", "code"), [(mistaken, "PSC301"), (unreadable, "PSC104")])
def test_a_kernel_shows_its_errors(wrong: Any, code: str) -> None:
    found = read(wrong).text
    assert code in found
    assert "1 error" in found
    assert "flops" not in found


def test_a_program_has_places_and_costs() -> None:
    found = read(kernel.ir())
    assert "kernel[n](x: f32[n]) -> f32[n]" in found.text
    assert "# 9*n flops, 16*n bytes" in found.text
    links = [attributes["href"] or "" for tag, attributes in found.met if tag == "a"]
    assert links
    assert all(re.search(r"test_html\.py#L\d+$", link) for link in links)
    titles = [attributes["title"] for tag, attributes in found.met if tag == "a"]
    assert "total = helper(x)" in titles
    for line in str(kernel.ir()).splitlines():
        assert line.strip() in found.text


def test_a_lowered_program() -> None:
    found = read(kernel.lower(n=3))
    assert "stablehlo." in found.text
    assert "n3" in found.text.replace(" ", "")


def test_a_notebook_alone_loads_the_room() -> None:
    code = (
        "import sys, numpy as np, pscdsl as psc\n"
        "from pscdsl import f32\n"
        "@psc.kernel\n"
        "def f(x: f32['n']) -> f32['n']:\n"
        "    return 2 * x\n"
        "y = f(np.ones(3, np.float32)); repr(y); repr(f); repr(f.ir())\n"
        "assert not [n for n in sys.modules if n.startswith('pscdsl._src.notebook')]\n"
        "assert callable(psc.load_ipython_extension)\n"
        "assert 'IPython' not in sys.modules\n"
        "assert y._repr_html_().startswith('<div')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("last", ["jax", "ours"])
def test_arrays_of_jax_have_no_html(last: str) -> None:
    pytest.importorskip("jax")
    loads = [
        "import jax.numpy as jnp, numpy as np",
        "from pscdsl._src.xla.runtime.devices import put; y = put(np.ones(3, np.float32))",
    ]
    code = (
        *(loads if last == "ours" else ["import numpy as np", *reversed(loads)]),
        "assert '<svg' in y._repr_html_()",
        "assert not hasattr(jnp.ones(3), '_repr_html_')",
    )
    subprocess.run([sys.executable, "-c", "\n".join(code)], check=True)
