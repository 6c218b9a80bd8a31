"""A program that several processes run, in one of several ways: see `test_processes.py`.

`python -m tests.meshes.worker MODE FOLDER [ADDRESS PROCESSES PROCESS]`
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pscdsl as psc
from pscdsl import distributed, f32
from pscdsl._src.xla.mesh_executable import MeshExecutable, mesh_executable
from pscdsl.typing.placements import Placement

HEARTBEAT = 3.0
TIMEOUT = 20.0
ADD = """({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %t = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %t : tensor<f32>
})"""
X = np.arange(64).reshape(8, 8)
DTYPES = ("?", "i1", "i8", "u2", "f2", "f4", "f8", "c8", "c16", ml_dtypes.bfloat16)
PLACEMENTS = ("n d", "n@data d", "n@model d", "n@data d@model", "n@model@data d", "n@model d@data")


@psc.kernel
def added(x: f32["n"]) -> f32["n"]:
    return x + 1


class Params(psc.Record):
    """A network of two layers."""

    w: f32["d h"]
    v: f32["h k"]


def loss(p: Params, x: f32["n d"], y: f32["n k"]) -> f32:
    return np.mean((np.tanh(x @ p.w) @ p.v - y) ** 2)


@psc.kernel
def step(p: Params, x: f32["n@data d"], y: f32["n@data k"], rate: f32) -> tuple[f32, Params]:
    value, slope = psc.value_and_grad(loss)(p, x, y)
    return value, psc.tree.map(lambda p, g: p - rate * g, p, slope)


def summing(mesh: psc.Mesh, title: str = "summing", scale: float = 1.0) -> MeshExecutable:
    """The program that gives each device the sum of all pieces."""
    devices = ", ".join(map(str, range(mesh.size)))
    kind = "tensor<4xf32>"
    text = f"""func.func public @main(%x: {kind}) -> {kind} {{
        %c = stablehlo.constant dense<{scale}> : {kind}
        %y = stablehlo.multiply %x, %c : {kind}
        %s = "stablehlo.all_reduce"(%y) {ADD}
            {{replica_groups = dense<[[{devices}]]> : tensor<1x{mesh.size}xi64>}}
            : ({kind}) -> {kind}
        return %s : {kind}
    }}"""
    axis = "@".join(mesh.axes)
    return mesh_executable(
        text, mesh, [Placement.parse(f"n@{axis}")], [Placement.parse("n")], title=title
    )


class Work:
    """What a process does."""

    def __init__(self, job: distributed.Job, folder: Path) -> None:
        self.job = job
        self.folder = folder
        self.mesh = psc.Mesh(data=len(psc.devices()))
        self.values = np.arange(4 * self.mesh.size, dtype=np.float32)

    def sum(self, program: MeshExecutable | None = None) -> None:
        """Sum the values over all devices."""
        program = program or summing(self.mesh)
        (result,) = program.run([program.live.put(self.values, program.arguments[0].placement)])
        wanted = self.values.reshape(-1, 4).sum(0)
        assert np.array_equal(result.shards[0].data, wanted), result.shards

    def ready(self) -> None:
        """Say that this process has run a program."""
        (self.folder / f"ready{self.job.process}").touch()

    def loop(self, pause: float = 0.01) -> None:
        """Run collectives until a fault ends it."""
        program = summing(self.mesh)
        self.sum(program)
        self.ready()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(pause)
            self.sum(program)
        raise AssertionError("nothing has happened")

    # Modes; in most of them process 1 is at fault.

    def right(self) -> None:
        """Put and gather arrays of all kinds."""
        self.sum()
        mesh = psc.Mesh(data=self.mesh.size // 2, model=2)
        array, value = mesh.put(X, "n d"), X
        pairs = [*((each, PLACEMENTS[-1]) for each in DTYPES), *(("f4", p) for p in PLACEMENTS)]
        for dtype, text in pairs:
            value = (X % 5).astype(dtype)
            array = mesh.put(value, text)
            whole = psc.gather(array)
            assert whole.dtype == value.dtype
            assert np.array_equal(whole, value), (dtype, text)
        tree = psc.gather({"a": (array, value), "b": np.ones(3)})
        assert np.array_equal(tree["a"][0], value)
        rows = len(X) // self.job.processes
        part = X[self.job.process * rows :][:rows]
        array = mesh.put(part, "n@data@model d", local=True)
        assert array.shape == X.shape
        assert np.array_equal(psc.gather(array), X)
        assert "in pieces of several processes" in repr(array)
        assert str(array) == repr(array)
        with pytest.raises(psc.PlacementError, match=r"psc\.gather"):
            np.asarray(array)
        with pytest.raises(psc.PlacementError, match=r"psc\.gather"):
            mesh.put(array, "n d")
        assert np.array_equal(added(np.ones(3, np.float32)), np.full(3, 2.0))
        assert np.array_equal(added(added(np.ones(3, np.float32))), np.full(3, 3.0))
        moved = mesh.put(added(np.ones(8, np.float32)), "n@data")
        assert np.array_equal(psc.gather(moved), np.full(8, 2.0))

    def training(self) -> None:
        """Train on the mesh of all devices, and on one device."""
        random = np.random.default_rng(0)
        x, y = (random.normal(size=(32, n)).astype(np.float32) for n in (8, 4))
        shapes = ((8, 16), (16, 4))
        alone = Params(*[random.normal(size=each).astype(np.float32) / 4 for each in shapes])
        shared = self.mesh.put(alone, "a b")
        xs, ys = self.mesh.put((x, y), "n@data d")
        for rate in (0.5, 0.5, 0.25):
            wanted, alone = step(alone, x, y, rate)
            with self.mesh:
                value, shared = step(shared, xs, ys, rate)
            assert abs(float(psc.gather(value)) - float(wanted)) < 1e-6
        assert np.allclose(psc.gather(shared).w, alone.w, atol=1e-6)

    def stored(self) -> None:
        """Train with a program that one process has compiled for a mesh of this shape."""
        placed = step.lower(n=32, d=8, h=16, k=4).on_mesh(data=self.mesh.size)
        assert placed.compile().source == "disk"
        self.training()

    def resumes(self) -> None:
        """Train with checkpoints; the first job is killed after two steps of four."""
        from safetensors.numpy import load_file, save_file

        path = self.folder / "checkpoint.safetensors"
        random = np.random.default_rng(0)
        x, y = (random.normal(size=(32, n)).astype(np.float32) for n in (8, 4))
        shapes, done = ((8, 16), (16, 4)), 0
        begin = Params(*[random.normal(size=each).astype(np.float32) / 4 for each in shapes])
        wanted, start = begin, begin
        if path.exists():
            known = load_file(path)
            start, done = Params(known["w"], known["v"]), int(known["done"])
        p = self.mesh.put(start, "a b")
        xs, ys = self.mesh.put((x, y), "n@data d")
        for at in range(done, 4):
            with self.mesh:
                _, p = step(p, xs, ys, 0.5)
            whole = psc.gather(p)
            if self.job.process == 0:
                new = path.with_suffix(".new")
                save_file({"w": whole.w, "v": whole.v, "done": np.array(at + 1)}, new)
                new.replace(path)
            if at + 1 == 2 and self.job.process == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        for _ in range(4):
            _, wanted = step(wanted, x, y, 0.5)
        assert np.allclose(psc.gather(p).w, wanted.w, atol=1e-6)
        print("from step", done)

    def other_rate(self) -> None:
        """Call a kernel with other numbers."""
        with self.mesh:
            zeros = Params(np.zeros((8, 16), np.float32), np.zeros((16, 4), np.float32))
            x, y = np.zeros((32, 8), np.float32), np.zeros((32, 4), np.float32)
            step(zeros, x, y, 0.5 + self.job.process)

    def raises(self) -> None:
        """Fail in process 1."""
        self.sum()
        if self.job.process == 1:
            raise KeyError("no such thing")
        self.loop()

    def raises_in_0(self) -> None:
        """Fail in process 0."""
        self.sum()
        if self.job.process == 0:
            raise KeyError("no such thing")
        self.loop()

    def idle(self) -> None:
        """Process 0 works by itself when process 1 is killed."""
        self.sum()
        self.ready()
        time.sleep(1.0 if self.job.process == 0 else 60)
        while not (self.folder / "killed").exists():
            time.sleep(0.05)
        time.sleep(1.0)
        self.sum()

    def finishes(self) -> None:
        """End process 1 without a fault."""
        self.sum()
        if self.job.process == 1:
            return
        self.loop()

    def other_program(self) -> None:
        """Run programs that differ."""
        self.sum(summing(self.mesh, scale=1.0 if self.job.process == 0 else 1.5))

    def other_name(self) -> None:
        """Run programs of other names."""
        self.sum(summing(self.mesh, title="loss" if self.job.process == 0 else "step"))

    def other_mesh(self) -> None:
        """Run on meshes of other axes."""
        if self.job.process == 1:
            self.mesh = psc.Mesh(rows=self.mesh.size)
        self.sum()

    def other_order(self) -> None:
        """Run on devices in another order."""
        if self.job.process == 1:
            self.mesh = psc.Mesh(psc.devices()[::-1], data=self.mesh.size)
        self.sum()

    def other_contents(self) -> None:
        """Put other contents in each process."""
        self.mesh.put(self.values + self.job.process, "n")

    def never_comes_to_a_program(self) -> None:
        """Do something else in process 1."""
        if self.job.process == 1:
            time.sleep(8)
            return
        self.sum()

    def other_thread(self) -> None:
        """Run a program in another thread."""
        program = summing(self.mesh)
        self.sum(program)
        problems: list[Exception] = []

        def work() -> None:
            try:
                self.sum(program)
            except distributed.DistributedError as problem:
                problems.append(problem)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        (problem,) = problems
        assert "run in one thread" in str(problem)

    def some_devices(self) -> None:
        """Make a mesh of some processes."""
        with pytest.raises(psc.PlacementError, match="equally many devices of every process"):
            psc.Mesh(data=1).put(X, "n d")

    def twice(self) -> None:
        """Start twice."""
        with pytest.raises(distributed.DistributedError, match="was called already"):
            distributed.start()


def main(mode: str, folder: str, *where: str) -> None:
    """Join the job, and do what the mode says."""
    options: dict[str, Any] = {"heartbeat": HEARTBEAT, "timeout": TIMEOUT}
    if mode == "never_comes_to_a_program":
        options["timeout"] = 4.0
    if mode == "too_late":
        added(np.ones(3, np.float32))
    if where:
        job = distributed.start(where[0], int(where[1]), int(where[2]), **options)
    else:
        job = distributed.start(**options)
    if mode == "start":
        print(job.launcher, flush=True)
        return
    work: Callable[[], None] = getattr(Work(job, Path(folder)), mode)
    work()
    print(f"process {job.process} of {job.processes} is done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
