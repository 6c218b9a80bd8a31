"""The examples: what they achieve, not only that they run.

`test_readme` runs those whole whose output README.md has; where that says all, nothing is here, and
what is here it runs with `SHARE=1`.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.checker.check import check_paths

pytestmark = pytest.mark.jaxlib

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> Any:
    """An example as a module; importing it prints nothing."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_it_is_tested_and_silent_when_imported(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    shown = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    if path.stem == "deployment_server":
        pytest.importorskip("tornado", reason="the server of the example is Tornado's")
    if path.stem == "many_devices":
        pytest.importorskip("safetensors", reason="its checkpoints are files of safetensors")
    assert f'example("{path.stem}")' in here or f"$ python examples/{path.name}" in shown
    example(path.stem)
    assert capfd.readouterr() == ("", "")


def test_the_checker_accepts_them() -> None:
    result = check_paths([EXAMPLES])
    assert not result.diagnostics
    assert {kernel.status for kernel in result.kernels} == {"ok"}
    with_kernels = {Path(kernel.path).stem for kernel in result.kernels}
    without = {path.stem for path in EXAMPLES.glob("*.py")} - with_kernels
    assert without == {"deployment_server"}, "it loads one"


def test_logistic_regression_finds_the_weights_of_scikit_learn() -> None:
    result = example("logistic_regression").run()
    assert result.losses[-1] < 0.07 < result.losses[0]
    assert result.steps < 15
    assert result.slope < 1e-6
    assert result.difference < 2e-3
    assert result.accuracies["Newton's method"] == result.accuracies["scikit-learn"]
    assert min(result.accuracies.values()) > 0.94


def test_the_network_of_convolutions_reads_digits_by_one_compiled_step() -> None:
    result = example("all_convolution").run(epochs=6, channels=24)
    assert result.losses[0] > 2
    assert result.losses[-10:].mean() < 0.7
    assert result.accuracy > 0.9
    assert result.compiled == 1


def test_a_job_that_is_killed_goes_on_on_another_mesh() -> None:
    pytest.importorskip("safetensors", reason="its checkpoints are files of safetensors")
    result = example("many_devices").run()
    assert result.killed == -signal.SIGKILL
    assert result.told == "from step 100 to 200 on 2 devices"
    assert result.accuracy > 0.9


def test_the_transformer_learns_to_write() -> None:
    char_transformer = example("char_transformer")
    text = char_transformer.read_text("[a-c]*.py")
    result = char_transformer.run(text, steps=120, batch=8, window=32, count=40)
    assert result.losses[0] > np.log2(50)
    assert result.bits < 3.8
    assert len(result.written) == 40
    assert 3.3 < result.pairs < 3.8, "the text is English"


def test_the_hidden_markov_model_tells_vowels_from_consonants() -> None:
    result = example("hmm_text").run()
    assert result.likelihoods[-1] == pytest.approx(result.reference, rel=1e-12)
    rises = np.diff(result.likelihoods)
    assert np.all(rises > -1e-8), "a step of expectation maximisation never loses likelihood"
    assert result.likelihoods[-1] == max(result.ends)
    vowels = next(group for group in result.groups if "a" in group)
    assert set(" aeiou") <= set(vowels)
    assert not set("bcdfgjklmnpqrstvwxz") & set(vowels)
    assert max(result.repeats) < 0.5, "vowels and consonants alternate"


def test_the_layer_is_numpys_and_its_elementwise_part_is_fused() -> None:
    selu_layer = example("selu_layer")
    result = selu_layer.run(n=32, i=16, o=8)
    assert result.difference < 1e-5
    assert "layer[i o n](p.w: f32[i o], p.b: f32[o], x: f32[n i]) -> f32[n o]" in result.program
    before = selu_layer.operations(result.stablehlo)
    after = selu_layer.instructions(result.optimised)
    assert before["dot_general"] == before["exponential_minus_one"] == before["select"] == 1
    assert after["fusion"] >= 1
    assert sum(after.values()) <= 3 < sum(before.values())


def test_the_picture_is_numpys_and_a_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mandelbrot = example("mandelbrot")
    real, imaginary = mandelbrot.plane(48, 32)
    counts = np.asarray(mandelbrot.orbits(real, imaginary, np.int32(50)).count)
    expected = mandelbrot.escape_counts_in_numpy(real, imaginary, 50)
    # A chaotic orbit may tell one rounding of a product and a sum from two.
    assert np.mean(counts == expected) > 0.99

    target = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", ["mandelbrot.py", str(target)])
    mandelbrot.main()
    image = pytest.importorskip("PIL.Image")
    pixels = np.asarray(image.open(io.BytesIO(target.read_bytes())))
    assert pixels.shape == (640, 960, 3)
    assert np.array_equal(pixels, pixels[::-1]), "the set is its own mirror image"
    assert not pixels[320, 600].any(), "0 is inside"


def test_another_process_serves_what_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tornado", reason="the server of the example is Tornado's")
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    deployment = example("deployment")
    result = deployment.run(epochs=10, seconds=0.02)
    assert result.losses[-1] < 0.2 < result.losses[0]
    assert result.accuracy > 0.94
    assert result.agree
    assert result.difference < 1e-5
    assert [status for status, _ in result.refusals] == [400, 400, 400]
    assert "not exported for d=64, h=64, k=10, n=7" in result.refusals[0][1]
    assert "`pixels` of `classify` is f64[1 64]" in result.refusals[1][1]
    assert "pscdsl._src.kernels.loaded" in result.modules
    never = (
        *("pscdsl._src.frontend", "pscdsl._src.kernels.kernel"),
        *("pscdsl._src.ir.builder", "pscdsl._src.interpreters"),
    )
    assert not [name for name in result.modules if name.startswith(never)]
    assert not list(tmp_path.iterdir()), "it leaves nothing behind"


def test_the_server_answers_as_the_kernel_does(tmp_path: Path) -> None:
    """What it does with requests that are wrong is tested in `test_deployment_server`."""
    pytest.importorskip("tornado", reason="the server of the example is Tornado's")
    server, deployment = example("deployment_server"), example("deployment")
    key, pixels = psc.random.key(0), np.zeros((4, 6), np.float32)
    none = np.zeros(4, np.int32)
    network, _ = deployment.train(key, pixels, none, none[None], np.float32(0))
    deployment.deploy(network, tmp_path)
    answer = server.Model(tmp_path).answer(json.dumps({"pixels": pixels[:1].tolist()}).encode())
    found = deployment.classify(network, pixels[:1])
    np.testing.assert_array_equal(answer["digit"], found.digit)
    np.testing.assert_allclose(answer["probability"], found.probability, rtol=1e-6)


def test_user_primitives_round_as_their_meanings_do() -> None:
    result = example("user_primitive").run()
    assert result.differences == 0
    exact, rounded, coarse = (result.accuracies[bits] for bits in ("23", "7", "1"))
    assert exact > 0.85
    assert abs(exact - rounded) < 0.01
    assert exact - 0.05 < coarse < exact


def test_the_simulated_price_is_the_exact_one() -> None:
    option_price = example("option_price")
    found = [option_price.run(n=20_000, steps=20, seed=seed) for seed in range(4)]
    for result in found:
        assert abs(result.european.mean - result.exact) < 4 * result.european.error
        assert result.asian.mean < result.european.mean, "a mean varies less than what comes last"
    assert len({float(result.european.mean) for result in found}) == 4
