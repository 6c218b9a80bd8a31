"""Several processes that run one program: launchers, and every fault that must not hang."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pscdsl._src.xla.launchers import DistributedError, Launch, first_host, found
from tests.support.share import some

pytestmark = pytest.mark.jaxlib

WORKER = (sys.executable, "-m", "tests.meshes.worker")
LIMIT = 60.0
"""Seconds after which a process hangs; its faults are known after a tenth of it."""
_LAUNCHED = re.compile("^(PMI|OMPI|SLURM|MPI_|MASTER_|RANK$|WORLD_SIZE$|PSCDSL_DEVICES)")


def environment(**more: str) -> dict[str, str]:
    known = {name: text for name, text in os.environ.items() if not _LAUNCHED.match(name)}
    paths = [os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**known, "PYTHONPATH": os.pathsep.join(paths), **more}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@dataclass
class Ended:
    """How a process has ended."""

    code: int
    out: str
    err: str
    seconds: float


class Processes:
    """Processes of one job, launched by hand."""

    def __init__(
        self,
        mode: str,
        folder: Path,
        numbers: Sequence[int] = (0, 1),
        total: Sequence[int] = (2, 2),
        environments: Mapping[int, Mapping[str, str]] | None = None,
        address: str | None = None,
    ) -> None:
        self.folder = folder
        self.started = time.monotonic()
        address = address or f"127.0.0.1:{free_port()}"
        self.running = [
            subprocess.Popen(
                [*WORKER, mode, str(folder), address, str(count), str(number)],
                env=environment(**(environments or {}).get(at, {})),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for at, (number, count) in enumerate(zip(numbers, total, strict=True))
        ]

    def ready(self) -> None:
        """Wait until both have run a program."""
        end = time.monotonic() + LIMIT
        while not all((self.folder / f"ready{at}").exists() for at in range(len(self.running))):
            assert time.monotonic() < end
            assert all(each.poll() is None for each in self.running), self.ended()
            time.sleep(0.02)
        self.started = time.monotonic()

    def ended(self, *, but: int | None = None) -> list[Ended]:
        """Wait for the end of all, killing one of them after the others."""
        found: dict[int, Ended] = {}
        try:
            for at in sorted(range(len(self.running)), key=lambda at: at == but):
                each = self.running[at]
                if at == but:
                    each.kill()
                out, err = each.communicate(timeout=LIMIT)
                found[at] = Ended(each.returncode, out, err, time.monotonic() - self.started)
        finally:
            for each in self.running:
                each.kill()
        return [found[at] for at in sorted(found)]


# Launchers.


def mpiexec() -> str:
    """The path of MPICH's `mpiexec`, which its wheel installs beside Python."""
    there = shutil.which("mpiexec", path=sysconfig.get_path("scripts")) or shutil.which("mpiexec")
    if there is None:
        pytest.skip("there is no mpiexec beside Python: pip install mpich")
    return there


@pytest.mark.parametrize(("processes", "devices"), some([(2, 1), (2, 2), (4, 1)], 3))
def test_programs_under_mpiexec(processes: int, devices: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [mpiexec(), "-n", str(processes), *WORKER, "right", str(tmp_path)],
        env=environment(PSCDSL_DEVICES=str(devices)),
        capture_output=True,
        text=True,
        timeout=4 * LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall("process . of . is done", done.stdout)) == processes
    assert not done.stderr


def test_training_under_mpiexec(tmp_path: Path) -> None:
    done = subprocess.run(
        [mpiexec(), "-n", "2", *WORKER, "training", str(tmp_path)],
        env=environment(PSCDSL_DEVICES="2"),
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@pytest.mark.parametrize(("processes", "devices"), some([(2, 2), (4, 1), (1, 4)], 2))
def test_programs_compiled_before_are_found(processes: int, devices: int, tmp_path: Path) -> None:
    cache = {"PSCDSL_CACHE": str(tmp_path / "cache")}
    before = ("compile", "tests/meshes/worker.py:step", "--mesh", "data=4")
    subprocess.run(
        [sys.executable, "-m", "pscdsl", *before, "--dims", "n=32,d=8,h=16,k=4"],
        env=environment(**cache), check=True, capture_output=True, timeout=LIMIT,
    )  # fmt: skip
    done = subprocess.run(
        [mpiexec(), "-n", str(processes), *WORKER, "stored", str(tmp_path)],
        env=environment(**cache, PSCDSL_DEVICES=str(devices)),
        capture_output=True, text=True, timeout=2 * LIMIT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_a_fault_under_mpiexec(tmp_path: Path) -> None:
    done = subprocess.run(
        [mpiexec(), "-n", "2", *WORKER, "other_program", str(tmp_path)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode != 0
    assert "summing differs between processes" in done.stderr


def test_without_a_launcher_the_job_is_this_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [*WORKER, "start", str(tmp_path)],
        env=environment(), capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "none\n", "")


@pytest.mark.parametrize(
    ("variables", "launch"),
    [
        ({}, None),
        (
            {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "29500"},
            Launch("torchrun", 1, 4, "a:29500"),
        ),
        (
            {
                **{"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "a", "MASTER_PORT": "29500"},
                "TORCHELASTIC_RUN_ID": "none",
            },
            Launch("torchrun", 1, 4, "a:29501"),
        ),
        (
            {
                **{"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"},
                **{"MASTER_ADDR": "b", "MASTER_PORT": "1234"},
            },
            Launch("Open MPI", 2, 3, "b:1234"),
        ),
        (
            {"PMI_RANK": "0", "PMI_SIZE": "2", "MASTER_ADDR": "b", "MASTER_PORT": "1"},
            Launch("MPICH", 0, 2, "b:1"),
        ),
        (
            {
                **{"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_JOB_ID": "123456"},
                **{"SLURM_STEP_ID": "2", "SLURM_STEP_NODELIST": "node[003-007,009],other"},
            },
            Launch("SLURM", 5, 8, "node003:27650"),
        ),
    ],
)
def test_environments_of_launchers(variables: dict[str, str], launch: Launch | None) -> None:
    assert found(variables) == launch


def test_local_processes_of_mpi_share_a_word() -> None:
    variables = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}
    one, other = found(variables), found({**variables, "PMI_RANK": "1"})
    assert one is not None
    assert other is not None
    assert one.address is other.address is None
    assert one.key == other.key


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PMIX_RANK": "0"}, "the environment has PMIX_RANK, but not all that is needed"),
        ({"PMI_RANK": "0", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"}, "2 of them on this host"),
        ({"PMI_RANK": "0", "PMI_SIZE": "4"}, "an unknown number of them on this host"),
        ({"PMI_RANK": "x", "PMI_SIZE": "4"}, "PMI_RANK is `x`, and no number"),
        ({"PMI_RANK": "0", "PMI_SIZE": "4", "MASTER_ADDR": "a"}, "but no MASTER_PORT"),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, "on which hosts the step runs"),
    ],
)
def test_environments_that_do_not_say_enough(variables: dict[str, str], message: str) -> None:
    with pytest.raises(DistributedError, match=message):
        found(variables)


@pytest.mark.parametrize(
    ("listed", "host"),
    [
        ("node7", "node7"),
        ("node[3,5]", "node3"),
        ("node[003-007,009],other", "node003"),
        ("a,b", "a"),
        ("n[1-2]-ib,x", "n1-ib"),
        ("", ""),
    ],
)
def test_the_first_host_of_a_list(listed: str, host: str) -> None:
    assert first_host(listed) == host


# Faults: each process that is not killed ends with an error that says what has happened.


@pytest.mark.parametrize("mode", some(["right", "other_thread", "some_devices", "twice"], 4))
def test_no_fault(mode: str, tmp_path: Path) -> None:
    for ended in Processes(mode, tmp_path).ended():
        assert (ended.code, ended.err) == (0, "")
        assert "is done" in ended.out


def test_a_process_is_killed_in_a_collective(tmp_path: Path) -> None:
    job = Processes("loop", tmp_path)
    job.ready()
    job.running[1].kill()
    ended = job.ended()[0]
    assert ended.code == 1
    assert re.search(r"DistributedError: process 1 \(pid .*\) has ended", ended.err), ended.err
    assert ended.seconds < 15


def test_a_process_is_killed_while_another_computes(tmp_path: Path) -> None:
    job = Processes("idle", tmp_path)
    job.ready()
    job.running[1].kill()
    (tmp_path / "killed").touch()
    ended = job.ended()[0]
    assert ended.code == 1
    assert re.search(r"DistributedError: process 1 \(pid .*\) has ended", ended.err), ended.err
    assert ended.seconds < 15


def test_a_process_is_stopped(tmp_path: Path) -> None:
    job = Processes("loop", tmp_path)
    job.ready()
    job.running[1].send_signal(signal.SIGSTOP)
    ended = job.ended(but=1)[0]
    assert ended.code in (1, 70)
    assert "process 1" in ended.err
    assert "has not answered for" in ended.err
    assert ended.seconds < 15


def test_process_0_is_killed(tmp_path: Path) -> None:
    job = Processes("loop", tmp_path)
    job.ready()
    job.running[0].kill()
    ended = job.ended()[1]
    assert ended.code != 0
    assert re.search(r"process 0 \(.*\) has ended", ended.err), ended.err
    assert ended.seconds < 15


@pytest.mark.parametrize(("mode", "fault"), some([("raises", 1), ("raises_in_0", 0)], 2))
def test_a_process_fails(mode: str, fault: int, tmp_path: Path) -> None:
    ended = Processes(mode, tmp_path).ended()
    assert "KeyError: 'no such thing'" in ended[fault].err
    other = ended[1 - fault]
    assert other.code in (1, 70)
    assert re.search(rf"process {fault} .*has failed with KeyError: 'no such", other.err), other.err


def test_a_job_goes_on_from_its_checkpoint_on_another_mesh(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="checkpoints are files of safetensors")
    assert "process 1" in Processes("resumes", tmp_path).ended()[0].err
    more = {"PSCDSL_DEVICES": "2"}
    for ended in Processes("resumes", tmp_path, environments={0: more, 1: more}).ended():
        assert (ended.code, ended.err) == (0, "")
        assert "from step 2" in ended.out


def test_a_process_finishes_before_the_others(tmp_path: Path) -> None:
    other, early = Processes("finishes", tmp_path).ended()
    assert early.code == 0
    assert other.code == 1
    assert re.search(r"DistributedError: process 1 \(.*\) has finished", other.err), other.err


@pytest.mark.parametrize(
    ("mode", "message"),
    some(
        [
            ("other_program", "summing differs between processes . and .: the program"),
            ("other_name", "process . comes to (loss|step), process . to (loss|step)"),
            ("other_mesh", "summing differs between processes"),
            ("other_order", "summing differs between processes"),
            ("other_rate", r"float32\[\] that is put as `` differs between processes"),
            ("other_contents", "that is put as `_` differs between processes . and .: its piece"),
        ],
        3,
    ),
)
def test_processes_differ(mode: str, message: str, tmp_path: Path) -> None:
    for ended in Processes(mode, tmp_path).ended():
        assert ended.code == 1
        assert re.search(f"DistributedError: .*{message}", ended.err), ended.err


def test_a_process_does_not_come_to_a_program(tmp_path: Path) -> None:
    waiting, _ = Processes("never_comes_to_a_program", tmp_path).ended()
    assert "DistributedError: process 1 did not come to summing in 4 s" in waiting.err


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PSCDSL_DEVICES": "2"}, "devices in each process: 2, and process 0 has 1"),
        ({"XLA_FLAGS": "--xla_cpu_enable_fast_math=false"}, "another value for XLA_FLAGS"),
    ],
)
def test_processes_of_other_settings(
    variables: dict[str, str], message: str, tmp_path: Path
) -> None:
    for ended in Processes("start", tmp_path, environments={1: variables}).ended():
        assert ended.code == 1
        assert "DistributedError: process 1 (pid" in ended.err
        assert message in ended.err


@pytest.mark.parametrize(
    ("numbers", "total", "message"),
    [
        ((0, 1, 1), (3, 3, 3), "there are two processes 1"),
        ((0, 1), (2, 3), "says that there are 3 processes, and process 0 that there are 2"),
    ],
)
def test_processes_of_other_numbers(
    numbers: tuple[int, ...], total: tuple[int, ...], message: str, tmp_path: Path
) -> None:
    for ended in Processes("start", tmp_path, numbers, total).ended():
        assert ended.code == 1
        assert message in ended.err


def test_there_is_no_process_0(tmp_path: Path) -> None:
    (ended,) = Processes("never_comes_to_a_program", tmp_path, (1,), (2,)).ended()
    assert "DistributedError: process 1 of 2 found no process 0 in 4 s (127.0.0.1:" in ended.err


def test_a_process_never_comes(tmp_path: Path) -> None:
    ended = Processes("never_comes_to_a_program", tmp_path, (0, 2), (4, 4)).ended()
    for each in ended:
        assert "DistributedError: processes 1, 3 of 4 did not come to process 0 in 4 s" in each.err


def test_the_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        (ended,) = Processes("start", tmp_path, (0,), (2,), address=address).ended()
    assert f"process 0 cannot listen at {address}: Address already in use" in ended.err


def test_others_who_connect_are_ignored(tmp_path: Path) -> None:
    port, stop = free_port(), threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            for text in (b"GET / HTTP/1.0\r\n\r\n", b'hello {"process": 1}\n', b"hello []\n", b""):
                try:
                    with socket.create_connection(("127.0.0.1", port), 1) as other:
                        other.sendall(text)
                except OSError:
                    time.sleep(0.01)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        ended = Processes("start", tmp_path, address=f"127.0.0.1:{port}").ended()
    finally:
        stop.set()
        thread.join()
    assert [(each.code, each.err) for each in ended] == [(0, ""), (0, "")]


def test_devices_were_used_before(tmp_path: Path) -> None:
    (ended,) = Processes("too_late", tmp_path, (0,), (1,)).ended()
    assert "was called after devices were used" in ended.err


def test_wrong_arguments() -> None:
    from pscdsl.distributed import start

    wrong: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: start("host:1", 2), "are given together or not at all"),
        (lambda: start("host", 2, 0), "the address `host` is no host:port"),
        (lambda: start(heartbeat=0), "heartbeat=0 and timeout=300.0 are positive seconds"),
    )
    for call, message in wrong:
        with pytest.raises((ValueError, DistributedError), match=f"{message}"):
            call()


def test_torchrun_is_found(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("there is no torchrun: pip install torch")
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m", *WORKER[2:],
         "start", str(tmp_path)],
        env=environment(), capture_output=True, text=True, timeout=2 * LIMIT,
    )  # fmt: skip
    assert done.stdout == "torchrun\n" * 2
