"""Handwritten digits, learnt on many devices by a job that is killed and goes on elsewhere.

The signature of a step says that images are cut along the axis `data` of a mesh; all else is as on
one device. Each process of a job runs this file. A checkpoint holds whole arrays, so that the next
job may have another number of devices.

    python examples/many_devices.py                              # 4 devices, killed; then 2
    PSCDSL_DEVICES=8 python examples/many_devices.py FOLDER      # a job by itself
    mpiexec -n 2 python examples/many_devices.py FOLDER          # the same in two processes
"""

# scikit-learn comes without types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import pscdsl as psc
from pscdsl import distributed, f32, i32
from pscdsl.stdlib.losses import cross_entropy
from pscdsl.stdlib.optimizers import momentum

TOLERANCE = 1e-4
"""The largest difference of a parameter from that of one device."""
STEPS, BATCH, EVERY = 200, 64, 25
"""A checkpoint is written after every 25 steps."""


class Network(psc.Record):
    """Two layers."""

    w: f32["64 h"]
    b: f32["h"]
    v: f32["h 10"]
    c: f32["10"]


@psc.kernel
def logits(p: Network, images: f32["n@data 64"]) -> f32["n@data 10"]:
    """How much each image looks like each digit."""
    return np.tanh(images @ p.w + p.b) @ p.v + p.c


@psc.kernel
def loss(p: Network, images: f32["n@data 64"], digits: i32["n@data"]) -> f32:
    """The mean over all images, on all devices."""
    return cross_entropy(logits(p, images), digits).mean()


@psc.kernel(donate=("p", "velocity"))  # psc: budget sent[data] <= 4*(75*h + 11)
def step(
    p: Network, velocity: Network, images: f32["n@data 64"], digits: i32["n@data"], rate: f32
) -> tuple[Network, Network, f32]:
    """One step; a device sends its part of the gradient and of the loss, and nothing else."""
    value, gradient = psc.value_and_grad(loss)(p, images, digits)
    p, velocity = momentum(p, velocity, gradient, rate)
    return p, velocity, value


def data(seed: int = 0) -> Any:
    """Images and digits, four fifths of them for training."""
    known: Any = load_digits()
    images = (known.data / 16).astype(np.float32)
    digits = known.target.astype(np.int32)
    return train_test_split(images, digits, test_size=0.2, random_state=seed, stratify=digits)


def start() -> Network:
    """The parameters before the first step."""
    random = np.random.default_rng(0)
    shapes = (64, 32), (32,), (32, 10), (10,)
    w, b, v, c = [random.normal(size=each).astype(np.float32) / 8 for each in shapes]
    return Network(w, b, v, c)


class Job(NamedTuple):
    """The outcome of a job."""

    first: int
    """The step from which it went on."""
    devices: int
    network: Network


def train(checkpoint: Path, killed_after: int = 0, *, writes: bool = True) -> Job:
    """Train from the checkpoint, if there is one, on all devices of the job."""
    seen, _, seen_digits, _ = data()
    mesh = psc.Mesh(data=gcd(BATCH, len(psc.devices())))
    p, velocity, first = start(), psc.tree.zeros_like(start()), 0
    if checkpoint.exists():
        known = load_file(checkpoint)
        p = Network(*[known[f"p{at}"] for at in range(4)])
        velocity = Network(*[known[f"velocity{at}"] for at in range(4)])
        first = int(known["step"])

    def everywhere(x: Any) -> Any:
        return mesh.put(x, psc.Placement.whole(x.ndim))

    p, velocity = psc.tree.map(everywhere, p), psc.tree.map(everywhere, velocity)
    for i in range(first, STEPS):
        rows = np.random.default_rng(i).choice(len(seen), BATCH, replace=False)
        images = mesh.put(seen[rows], "n@data d")
        digits = mesh.put(seen_digits[rows], "n@data")
        with mesh:
            p, velocity, _ = step(p, velocity, images, digits, 0.1)
        if (i + 1) % EVERY == 0:
            state = psc.gather((p, velocity))  # which all processes have to do
            if writes:
                write(checkpoint, state, i + 1)
        if i + 1 == killed_after:
            os.kill(os.getpid(), signal.SIGKILL)
    return Job(first, mesh.size, psc.gather(p))


def write(checkpoint: Path, state: tuple[Network, Network], steps: int) -> None:
    """Replace the checkpoint in one step: a job that is killed meanwhile leaves the last one."""
    p, velocity = state
    arrays = {f"p{at}": np.asarray(leaf) for at, leaf in enumerate(psc.tree.leaves(p))}
    arrays |= {f"velocity{at}": np.asarray(x) for at, x in enumerate(psc.tree.leaves(velocity))}
    new = checkpoint.with_suffix(".new")
    save_file({**arrays, "step": np.array(steps)}, new)
    new.replace(checkpoint)


def launch(folder: Path, devices: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a job of one process that has so many CPU devices."""
    return subprocess.run(
        [sys.executable, __file__, str(folder), *arguments],
        env={**os.environ, "PSCDSL_DEVICES": str(devices)},
        capture_output=True,
        text=True,
        check=False,
    )


class Result(NamedTuple):
    """The outcome of both jobs, and of training on one device."""

    killed: int
    """The exit code of the first job."""
    told: str
    """The line that the second job printed."""
    difference: float
    accuracy: float


def run() -> Result:
    """Kill a job, let another one go on, and compare it with a job that was not killed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        killed = launch(folder, 4, "110")
        second = launch(folder, 2)
        assert second.returncode == 0, second.stderr
        known = load_file(folder / "checkpoint.safetensors")
        alone = train(folder / "alone.safetensors").network
    network = Network(*[known[f"p{at}"] for at in range(4)])
    pairs = zip(psc.tree.leaves(network), psc.tree.leaves(alone), strict=True)
    difference = max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
    np.testing.assert_array_less(difference, TOLERANCE)
    _, unseen, _, unseen_digits = data()
    right = np.asarray(logits(network, unseen)).argmax(axis=1) == unseen_digits
    return Result(
        killed.returncode, second.stdout.splitlines()[-1], difference, float(right.mean())
    )


def main() -> None:
    """Do the work of a job, or run two of them."""
    if len(sys.argv) > 1:
        folder, *killed_after = sys.argv[1:]
        process = distributed.start().process
        checkpoint = Path(folder, "checkpoint.safetensors")
        job = train(checkpoint, *map(int, killed_after), writes=process == 0)
        if process == 0:
            print(f"from step {job.first} to {STEPS} on {job.devices} devices")
        return
    result = run()
    print(f"a job on 4 devices is killed: exit code {result.killed}")
    print(f"another one goes on: {result.told}")
    print(f"accuracy on unseen images: {result.accuracy:.1%}")
    print(f"parameters differ from those of one device by {result.difference:.0e}", end=", ")
    print(f"at most {TOLERANCE:.0e} is allowed")


if __name__ == "__main__":
    main()
