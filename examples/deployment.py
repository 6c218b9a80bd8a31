"""A network that reads digits, from its training to answers over HTTP by another process.

Training and classifying are kernels.  What is deployed is a folder of three files: the classifier,
exported for two sizes of a batch; the learnt parameters; and `deployment_server.py`, which serves
any such classifier and has never seen its source.  The server runs in a process of its own, and is
started twice: it compiles what it has loaded at first, and finds it compiled afterwards.
"""

# scikit-learn comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import pscdsl as psc
from pscdsl import Float, Key, f32, i32
from pscdsl.stdlib.activations import relu, softmax
from pscdsl.stdlib.layers import Dense, dense, dense_layer
from pscdsl.stdlib.losses import cross_entropy
from pscdsl.stdlib.optimizers import Moments, adam, adam_start

SERVER = Path(__file__).with_name("deployment_server.py")
TOLERANCE = 1e-5  # of probabilities, served and the trainer's
ONE, MANY = 1, 32  # the sizes of a batch


class Network(psc.Record, dims="d h k"):
    """Two layers, from d pixels over h features to k classes."""

    hidden: Dense["d h"]
    output: Dense["h k"]


class Reading(psc.Record, dims="n"):
    """What each image shows, and how likely that is."""

    digit: i32["n"]
    probability: Float["n"]


@psc.kernel  # psc: budget flops <= 2*n*h*(d + k) + 2*n*h + 15*n*k
def classify(p: Network["d h k"], pixels: Float["n d"]) -> Reading["n"]:
    """The most likely class of each image, whose pixels are in 0..1."""
    assert p.output.bias.shape[0] >= 1
    likely = softmax(dense(p.output, relu(dense(p.hidden, pixels))))
    return Reading(likely.argmax(axis=1).astype(np.int32), likely.max(axis=1))


@psc.kernel
def loss(p: Network["d h k"], pixels: Float["n d"], digits: i32["n"]) -> Float:
    """The mean of the negative log-likelihoods."""
    return cross_entropy(dense(p.output, relu(dense(p.hidden, pixels))), digits).mean()


@psc.kernel
def train(
    key: Key, pixels: f32["n d"], digits: i32["n"], batches: i32["t b"], rate: f32
) -> tuple[Network["d 64 10"], f32["t"]]:
    """A new network after a step for each batch of rows; also the loss before each step."""
    first, second = psc.random.split(key)
    p = Network(dense_layer(first, pixels.shape[1], 64), dense_layer(second, 64, 10))

    def step(
        state: tuple[Network["d 64 10"], Moments[Network["d 64 10"]]], rows: i32["b"]
    ) -> tuple[tuple[Network["d 64 10"], Moments[Network["d 64 10"]]], f32]:
        p, moments = state
        value, gradient = psc.value_and_grad(loss)(p, pixels[rows], digits[rows])
        return adam(p, moments, gradient, rate), value

    (p, _), losses = psc.scan(step, (p, adam_start(p)), batches)
    return p, losses


class Served:
    """A server, as its clients see it."""

    def __init__(self, port: int, start: float) -> None:
        self.port = port
        self.start = start
        """The seconds that it took until it could answer."""

    def ask(self, method: str = "GET", content: Any = None) -> tuple[int, dict[str, Any]]:
        """The status, and what was replied."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            kind = {"Content-Type": "application/json"}
            connection.request(method, "/", json.dumps(content), kind)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()


@contextmanager
def served(folder: Path, *options: str) -> Generator[Served]:
    """A server in a process of its own, which has ended in the end."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, str(folder / SERVER.name), *options],
        cwd=folder,
        env={**os.environ, "PSCDSL_CACHE": str(folder / "compiled")},
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdout is not None
            port = json.loads(process.stdout.readline())["port"]
            yield Served(port, time.perf_counter() - begin)
            process.terminate()
            if process.wait(timeout=20) != 0:
                raise RuntimeError("the server did not end well")
        finally:
            process.kill()


def deploy(p: Network[Any, Any, Any], folder: Path) -> None:
    """Write the three files that another machine needs, beside the key (`PSCDSL_KEY`)."""
    d, h = p.hidden.weights.shape
    k = p.output.bias.shape[0]
    classify.export(folder / "classify.psca", {"n": ONE}, {"n": MANY}, d=d, h=h, k=k, Float=f32)
    arrays = {
        f"{layer}.{field}": np.asarray(getattr(getattr(p, layer), field))
        for layer in ("hidden", "output")
        for field in ("weights", "bias")
    }
    np.savez(folder / "network.npz", allow_pickle=False, **arrays)
    shutil.copy(SERVER, folder)


def calls_per_second(function: Callable[..., Any], *args: Any, seconds: float) -> float:
    """How often a function can be called, in the best of three periods, one call after another."""

    def period() -> float:
        begin, calls = time.perf_counter(), 0
        while (passed := time.perf_counter() - begin) < seconds:
            function(*args).digit.block_until_ready()
            calls += 1
        return calls / passed

    return max(period() for _ in range(3))


class Result(NamedTuple):
    """What the trained, exported and served network does."""

    losses: np.ndarray
    accuracy: float
    """On examples that were not used in training, as served."""
    agree: bool
    """Whether all digits served are those that the trainer finds itself."""
    difference: float
    """The largest between probabilities, served and the trainer's."""
    size: int
    """Of the exported classifier, in bytes."""
    starts: tuple[float, float]
    """Seconds until the server can answer: when it compiles, and afterwards."""
    latencies: dict[int, float]
    """The median of the seconds that a request takes, for each size of a batch."""
    refusals: tuple[tuple[int, str], ...]
    """Status and message for a batch of a wrong size, a wrong dtype, and nonsense."""
    modules: tuple[str, ...]
    """The modules of the language that the serving process has loaded."""
    rates: tuple[float, float]
    """Calls in a second of the kernel, and of what was loaded."""


def run(epochs: int = 60, seconds: float = 0.2) -> Result:
    """Train, deploy, and ask the server about every example that was not used in training.

    Calls are counted for so many seconds, three times.
    """
    data: Any = load_digits()
    split: list[Any] = train_test_split(
        (data.data / 16).astype(np.float32),
        data.target.astype(np.int32),
        test_size=0.3,
        random_state=0,
        stratify=data.target,
    )
    pixels, test, digits, wanted = split
    rng = np.random.default_rng(0)
    n = len(pixels)
    order = np.concatenate([rng.permutation(n)[: n // 32 * 32] for _ in range(epochs)])
    batches = order.reshape(-1, 32).astype(np.int32)
    network, losses = train(psc.random.key(0), pixels, digits, batches, np.float32(0.003))

    whole = len(test) // MANY * MANY
    parts = [test[at : at + MANY] for at in range(0, whole, MANY)]
    parts += [test[at : at + ONE] for at in range(whole, len(test), ONE)]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        deploy(network, folder)
        answers: list[dict[str, Any]] = []
        taken: dict[int, list[float]] = {ONE: [], MANY: []}
        with served(folder) as server:
            for part in parts:
                begin = time.perf_counter()
                status, answer = server.ask("POST", {"pixels": part.tolist()})
                taken[len(part)].append(time.perf_counter() - begin)
                assert status == 200, answer
                answers.append(answer)
            wrong: list[Any] = [
                {"pixels": test[:7].tolist()},
                {"pixels": test[:ONE].tolist(), "dtype": "float64"},
                "nonsense",
            ]
            refused = [server.ask("POST", each) for each in wrong]
            modules = server.ask()[1]["modules"]
            first = server.start
        with served(folder) as server:
            server.ask()
            second = server.start
        artefact = (folder / "classify.psca").read_bytes()

    own = classify(network, test)
    loaded = psc.load(artefact, types=[Network, Dense])
    found = np.concatenate([each["digit"] for each in answers])
    likely = np.concatenate([each["probability"] for each in answers])
    np.testing.assert_array_equal(found, np.asarray(own.digit))
    np.testing.assert_allclose(likely, np.asarray(own.probability), rtol=0, atol=TOLERANCE)
    return Result(
        losses=np.asarray(losses),
        accuracy=float(np.mean(found == wanted)),
        agree=bool(np.array_equal(found, own.digit)),
        difference=float(np.abs(likely - np.asarray(own.probability)).max()),
        size=len(artefact),
        starts=(first, second),
        latencies={size: float(np.median(each)) for size, each in taken.items()},
        refusals=tuple((status, reply["error"]) for status, reply in refused),
        modules=tuple(modules),
        rates=(
            calls_per_second(classify, network, test[:ONE], seconds=seconds),
            calls_per_second(loaded, network, test[:ONE], seconds=seconds),
        ),
    )


def main() -> None:
    """Print what the runs achieved."""
    result = run()
    losses, front = result.losses, [name for name in result.modules if ".frontend" in name]
    print(f"{len(losses)} steps of training, loss {losses[0]:.2f} to {losses[-1]:.4f}")
    print(f"exported for {ONE} and {MANY} images: {result.size / 1000:.1f} kB")
    print("a server starts in {:.2f} s, and again in {:.2f} s".format(*result.starts))
    print(f"accuracy on unseen images, as served: {result.accuracy:.1%}")
    print(f"the trainer finds the same digits: {result.agree}", end=", ")
    print(f"probabilities differ by {result.difference:.0e}", end=", ")
    print(f"at most {TOLERANCE:.0e} is allowed")
    for size, latency in result.latencies.items():
        print(f"median latency of a request with {size} of them: {latency * 1000:.2f} ms")
    for status, message in result.refusals:
        print(f"{status}: {message}")
    print(f"modules of the front end in the server: {len(front)}")
    print("calls in a second: {:.0f} of the kernel, {:.0f} as loaded".format(*result.rates))


if __name__ == "__main__":
    main()
