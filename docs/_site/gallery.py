"""Draw the results of the examples and of recorded benchmarks.

`python -m docs._site.gallery FOLDER [NAME …]` draws all pictures, or those that are named. The site
shows the pictures that `make gallery` has drawn, and no others.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

import pscdsl as psc

ROOT = Path(__file__).parents[2]
Axes = Any
"""The axes of a picture, matplotlib's."""

PICTURES: Final[dict[str, Callable[[Axes], None]]] = {}
"""The functions that draw, by the name of the picture."""
LARGE = ("plain_numpy", "programs")


def drawn(draw: Callable[[Axes], None]) -> Callable[[Axes], None]:
    """Register a function that draws the picture of its name."""
    PICTURES[draw.__name__] = draw
    return draw


def example(name: str) -> Any:
    """The module of an example."""
    return importlib.import_module(f"examples.{name}")


def show(axes: Axes, pixels: Any) -> None:
    """Show an array of pixels, and nothing beside it."""
    axes.imshow(np.asarray(pixels))
    axes.set_axis_off()


@drawn
def mandelbrot(axes: Axes) -> None:
    """The picture that the example writes."""
    show(axes, example("mandelbrot").run().pixels)


@drawn
def fluid(axes: Axes) -> None:
    """The vorticity at several times."""
    show(axes, example("fluid").run().pictures)


@drawn
def kalman_track(axes: Axes) -> None:
    """The track as measured and as smoothed, with bounds."""
    module = example("kalman_track")
    show(axes, module.picture(module.run()))


@drawn
def logistic_regression(axes: Axes) -> None:
    """The loss after each step."""
    losses = example("logistic_regression").run().losses
    axes.loglog(1 + np.arange(len(losses)), losses)
    axes.set(xlabel="steps of gradient descent", ylabel="loss")


@drawn
def hmm_text(axes: Axes) -> None:
    """The log-likelihood after each step."""
    found = example("hmm_text").run()
    axes.semilogx(1 + np.arange(len(found.likelihoods)), found.likelihoods / found.letters)
    axes.set(xlabel="steps of training", ylabel="log-likelihood of a letter")
    axes.text(0.03, 0.9, f"one state emits\n{found.groups[0]}", transform=axes.transAxes, va="top")
    axes.text(0.97, 0.1, f"the other\n{found.groups[1]}", transform=axes.transAxes, ha="right")


@drawn
def bayesian_regression(axes: Axes) -> None:
    """Two weights as the chains draw them."""
    module = example("bayesian_regression")
    data = module.load_breast_cancer()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    rng, keys = np.random.default_rng(0), psc.random.split(psc.random.key(0), 4)
    start = module.Weights(rng.normal(size=(4, 30)), rng.normal(size=4))
    slopes = np.asarray(
        module.many_chains(keys, start, x, data.target.astype(np.float64), 500, 1000).slopes
    )
    for chain in slopes:
        axes.plot(chain[:, 21], chain[:, 23], ".", markersize=2, alpha=0.4)
    axes.set(xlabel=f"weight of {data.feature_names[21]}", ylabel=data.feature_names[23])


@drawn
def neural_ode(axes: Axes) -> None:
    """The pendulum from a new start, as predicted and as it is."""
    module = example("neural_ode")
    rng, times = np.random.default_rng(0), 0.05 * np.arange(120)
    measured = module.truth(np.array([2.0, 0.0]), times) + module.NOISE * rng.normal(size=(120, 2))
    first, bias, last = (12, 2), 12, 12
    start = module.Network(
        rng.normal(size=first) / 2, rng.normal(size=bias) / 2, rng.normal(size=last) / 4
    )
    found = module.fit(start, measured.reshape(-1, 12, 2), times[:12], np.int32(150))
    new = np.array([-1.2, 1.0])
    states = np.asarray(module.swing(found.network, new, times).states)
    axes.plot(times, measured[:, 0], ".", label="measured, for training", alpha=0.5)
    axes.plot(times, states[:, 0], label="predicted, from a new start")
    axes.plot(times, module.truth(new, times)[:, 0], "--", label="true")
    axes.set(xlabel="seconds", ylabel="angle")
    axes.legend()


@drawn
def newton_cg(axes: Axes) -> None:
    """The times beside NumPy's."""
    reports = [each for each in example("newton_cg").run() if each.numpy_seconds is not None]
    places = np.arange(len(reports))
    axes.barh(places + 0.2, [each.seconds for each in reports], 0.4, label="pscdsl")
    axes.barh(places - 0.2, [each.numpy_seconds for each in reports], 0.4, label="NumPy")
    axes.set_yticks(places, [each.name for each in reports])
    axes.set(xscale="log", xlabel="seconds")
    axes.legend()


@drawn
def option_price(axes: Axes) -> None:
    """Some of the simulated paths."""
    module = example("option_price")
    market = module.Market(*map(np.float32, (100.0, 105.0, 0.03, 0.2, 1.0)))
    found = module.paths(psc.random.key(0), market, np.zeros((250, 200), np.float32))
    axes.plot(np.linspace(0, 1, 250), np.asarray(found), linewidth=0.4, alpha=0.6)
    axes.axhline(105, color="black", linestyle="--")
    axes.set(xlabel="years", ylabel="price of the share")


@drawn
def selu_layer(axes: Axes) -> None:
    """The function, and its derivative."""
    module = example("selu_layer")
    x = np.linspace(-4, 3, 400, dtype=np.float32)[None]
    axes.plot(x[0], np.asarray(module.selu(x))[0], label="selu")
    slope = psc.vjp(module.selu, x)[1](np.ones_like(x))[0]
    axes.plot(x[0], np.asarray(slope)[0], label="its derivative")
    axes.legend()


@drawn
def user_primitive(axes: Axes) -> None:
    """Images, rounded to fewer digits."""
    module = example("user_primitive")
    rows = np.linspace(0.1, 3, 400, dtype=np.float32)
    seven, one = (np.asarray(each) for each in module.rounded(rows))
    axes.plot(rows, rows, label="23 fractional bits")
    axes.plot(rows, seven, label="7 fractional bits")
    axes.plot(rows, one, label="1 fractional bit")
    axes.legend()


@drawn
def all_convolution(axes: Axes) -> None:
    """The loss of each batch."""
    found = example("all_convolution").run()
    axes.semilogy(found.losses, ".", markersize=2)
    axes.set(xlabel="steps of training", ylabel="loss of a batch")
    axes.set_title(f"{found.accuracy:.1%} of unseen digits are recognised")


@drawn
def char_transformer(axes: Axes) -> None:
    """The loss of each batch, and what the model writes."""
    module = example("char_transformer")
    found = module.run(module.read_text())
    axes.plot(found.losses / np.log(2))
    axes.set(xlabel="steps of training", ylabel="bits for each character")
    written = textwrap.fill(found.written[:300], 60)
    axes.text(0.97, 0.95, written, transform=axes.transAxes, ha="right", va="top", fontsize=8)


@drawn
def programs(axes: Axes) -> None:
    """The times of the examples beside jax's, as recorded."""
    kept = json.loads((ROOT / "benchmarks/comparison/times.json").read_text(encoding="utf-8"))
    found = {
        f"{example}: {name}": run["median"]
        for example, each in kept.items()
        for name, run in each["runs"].items()
    }
    rows = dict(sorted(found.items(), key=lambda row: -row[1]))
    ratios(axes, rows, "time over that of jax.jit")


@drawn
def plain_numpy(axes: Axes) -> None:
    """The times of plain NumPy programs beside NumPy's and Numba's, as recorded."""
    page = (ROOT / "docs/explanation/plain-numpy.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, float]] = {"NumPy": {}, "Numba": {}}
    for line in re.findall(r"^\| `.*$", page, re.MULTILINE):
        name, _, _, _, *beside = (cell.strip(" `*") for cell in line[2:].split("|"))
        for rival, cell in zip(found, beside, strict=False):
            if ratio := re.search(r", \**([\d.]+)", cell):
                found[rival][name] = float(ratio[1])
    names = sorted(found["NumPy"], key=lambda name: -found["NumPy"][name])
    for rival, marker in (("NumPy", "o"), ("Numba", "x")):
        shown = [name for name in names if name in found[rival]]
        places = [names.index(name) for name in shown]
        axes.plot([found[rival][name] for name in shown], places, marker, label=rival)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set(xscale="log", xlabel="time over that of NumPy, and of Numba")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.grid(axis="x", alpha=0.3)
    axes.legend()


def ratios(axes: Axes, rows: dict[str, float], label: str) -> None:
    """Draw ratios as bars from 1, on a logarithmic scale."""
    values = np.array([*rows.values()])
    colours = np.where(values <= 1, "C0", "C1")
    axes.barh([*rows], values - 1, left=1, color=colours)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.tick_params(axis="y", labelsize=7)
    axes.set(xscale="log", xlabel=label)
    axes.set_xticks([0.3, 0.5, 0.7, 1.0], ["0.3", "0.5", "0.7", "1"])
    axes.minorticks_off()


def main() -> None:
    """Draw into the folder, and print how long each picture took."""
    parser = argparse.ArgumentParser(prog="python -m docs._site.gallery", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *PICTURES], metavar="NAME")
    given = parser.parse_args()
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.names or PICTURES:
        start = time.perf_counter()
        size = (8, 7) if name in LARGE else (7, 4.2)
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
        PICTURES[name](axes)
        figure.savefig(given.folder / f"{name}.png", dpi=110, bbox_inches="tight")
        pyplot.close(figure)
        print(f"{name}.png: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
