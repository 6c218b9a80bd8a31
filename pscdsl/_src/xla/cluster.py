# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
"""Several processes that run one program: how they find each other, agree, and notice faults.

jaxlib's coordination service and collectives end a process where another one is missing or gone, or
wait for it.  So the processes meet before: each connects to process 0, says what it is, and hears
where the service is.  The connections stay open, and carry a beat: from them each process learns
that another one has ended or does not answer, and says so.  No data goes this way.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import platform
import secrets
import selectors
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pscdsl._src.support import processes as support
from pscdsl._src.support.tracebacks import public
from pscdsl._src.xla.device import JOB, default_device
from pscdsl._src.xla.launchers import DistributedError, Launch, found

log: Final = logging.getLogger("pscdsl.distributed")
_LONGEST: Final = 1 << 16
"""The most bytes of a message."""
_MOST_KNOWN: Final = 1 << 12
"""The most contents that are remembered."""
_BEAT, _BYE, _FAILED, _LOST, _DONE = ".", "bye", "failed", "lost", "done"


@dataclass(frozen=True, slots=True)
class Job:
    """The job that this process belongs to.

    Examples:
        >>> psc.distributed.Job(0, 4, "MPICH", "127.0.0.1:29500").processes
        4
    """

    process: int
    """The number of this process."""
    processes: int
    launcher: str
    """The launcher whose environment was found; `explicit` or `none` otherwise."""
    address: str
    """Where process 0 listens."""


Job.__module__ = "pscdsl.distributed"  # which may not be loaded yet


@public
def start(
    address: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    *,
    heartbeat: float = 30.0,
    timeout: float = 300.0,
) -> Job:
    """Make this process one of several that run the same program, each with its own devices.

    Call it once, before any kernel runs. From then on `psc.devices()` has the devices of all
    processes. What `torchrun`, `mpiexec` of MPICH or Open MPI, or SLURM's `srun` say in the
    environment is found, so that `mpiexec -n 4 python train.py` needs no arguments; without a
    launcher the job is this process alone. Each process logs a
    line to `pscdsl.distributed`.

    Args:
        address: Where process 0 is to listen, as `host:port`.
        processes: The number of processes.
        process: The number of this process, from 0.
        heartbeat: The seconds after which a process that does not answer counts as lost.
        timeout: The seconds in which all processes have to come, here and to each program.

    Raises:
        DistributedError: A process does not come, or has another number of processes, or another
            version of pscdsl, jaxlib, NumPy or Python.

    Examples:
        >>> psc.distributed.start("node7:29500", processes=2)
        Traceback (most recent call last):
        ValueError: `address`, `processes` and `process` are given together or not at all
    """
    launch = _explicit(address, processes, process)
    if not 0 < heartbeat < 1e6 or not 0 < timeout < 1e6:
        raise ValueError(f"heartbeat={heartbeat} and timeout={timeout} are positive seconds")
    if JOB.cluster is not None:
        raise DistributedError("`psc.distributed.start` was called already in this process")
    if support.has_client():
        raise DistributedError(
            "`psc.distributed.start` was called after devices were used: call it before any kernel "
            "runs, any mesh is made, and `psc.devices()` is asked"
        )
    launch = launch or found()
    if launch is None:
        launch = Launch("none", 0, 1, None, f"alone-{os.getpid()}")
    if not 0 <= launch.process < launch.processes:
        raise DistributedError(
            f"{launch.launcher}: this is process {launch.process} of {launch.processes}"
        )
    cluster = Cluster(launch, heartbeat, timeout)
    JOB.cluster = cluster
    job = Job(launch.process, launch.processes, launch.launcher, cluster.address)
    log.info(
        "process %d of %d on %s (%s), process 0 at %s",
        *(job.process, job.processes, platform.node(), job.launcher, job.address),
    )
    return job


def _explicit(address: str | None, processes: int | None, process: int | None) -> Launch | None:
    given = (address, processes, process)
    if given == (None, None, None):
        return None
    if address is None or processes is None or process is None:
        raise ValueError("`address`, `processes` and `process` are given together or not at all")
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"the address `{address}` is no host:port")
    return Launch("explicit", process, processes, address)


class _Peer:
    """A connection to another process."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.text = b""
        self.heard = time.monotonic()
        self.hello: dict[str, Any] = {}
        self.is_done = False
        """True if the process has said that it ends, or has ended."""

    @property
    def name(self) -> str:
        known = self.hello
        return f"process {known['process']} (pid {known['pid']} on {known['host']})"

    def say(self, word: str, content: object = "") -> None:
        """Send a message; a process that is gone is noticed where its messages are read."""
        message = f"{word} {json.dumps(content)}\n".encode()
        with suppress(OSError):
            self.connection.sendall(message)

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Yield what has come; raise ConnectionError at the end, ValueError for anything else."""
        try:
            more = self.connection.recv(_LONGEST)
        except (BlockingIOError, InterruptedError):
            return
        if not more:
            raise ConnectionError("the connection was closed")
        self.heard = time.monotonic()
        *lines, self.text = (self.text + more).split(b"\n")
        if len(self.text) > _LONGEST:
            raise ValueError("a message has no end")
        for line in lines:
            word, _, content = line.decode(errors="replace").partition(" ")
            yield word, json.loads(content)

    def close(self) -> None:
        self.is_done = True
        self.connection.close()


class Cluster:
    """This process among the others of its job."""

    def __init__(self, launch: Launch, heartbeat: float, timeout: float) -> None:
        self.process, self.processes = launch.process, launch.processes
        self.heartbeat, self.timeout = heartbeat, timeout
        self.lost: str | None = None
        """What is known of the first process that was lost."""
        self._lost_at = 0.0
        self._finished: dict[int, str] = {}
        """The processes that have finished without a fault."""
        self._calls = 0
        self._since = 0.0
        self._thread = 0
        self._agreed = 0
        self._known: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
        self._peers: dict[int, _Peer] = {}
        self._ended = threading.Event()
        self._before = _last_error()
        self.service: Any = None
        meet = _Meeting(launch, timeout, self._hello(launch))
        self.address, self.host, where = meet.host() if self.process == 0 else meet.join()
        self._peers = meet.peers
        try:
            self._connect(where, meet)
        except Exception:
            meet.close()
            raise
        threading.Thread(target=self._watch, name=support.WATCHER, daemon=True).start()
        atexit.register(self._finish)

    def _hello(self, launch: Launch) -> dict[str, Any]:
        from pscdsl._src.xla import disk
        from pscdsl._src.xla.runtime.devices import cpu_devices

        numpy, jaxlib = sys.modules["numpy"], disk.version()
        return {
            "process": launch.process,
            "processes": launch.processes,
            "pid": os.getpid(),
            "host": platform.node(),
            "facts": {
                "Python": ".".join(map(str, sys.version_info[:2])),
                "NumPy": numpy.__version__,
                "jaxlib": jaxlib,
                "files of pscdsl": disk.emission_digest()[:16],
                "platform": default_device().platform,
                "devices in each process": cpu_devices(),
                "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
                "heartbeat": self.heartbeat,
            },
        }

    # jaxlib's half.

    def _connect(self, where: str, meet: _Meeting) -> None:
        from pscdsl._src.xla.runtime import boot

        boot.boot()
        log_level = boot.untyped("utils").absl_set_min_log_level
        log_level(2)  # a warning that the service has a property which it is asked for
        long = max(600, int(10 * self.heartbeat))  # our own beat is faster, and says more
        if self.process == 0:
            self.service = boot.jax.get_distributed_runtime_service(
                where,
                self.processes,
                heartbeat_timeout=long,
                cluster_register_timeout=60,
                shutdown_timeout=5,
                recoverable=True,
            )
            for peer in self._peers.values():
                peer.say("service", where)
        self.client = boot.jax.get_distributed_runtime_client(
            where,
            self.process,
            init_timeout=60,
            heartbeat_timeout=long,
            shutdown_timeout=5,
            shutdown_on_destruction=False,
            use_compression=True,
        )
        self.client.connect()
        log_level(1)

    def cpu_options(self) -> dict[str, Any]:
        """Return what a client of CPU devices takes to know those of the other processes."""
        from pscdsl._src.xla.runtime import boot

        collectives = boot.jax.make_gloo_tcp_collectives(
            distributed_client=self.client, hostname=self.host, interface=None
        )
        return {**self.plugin_options(), "distributed_client": self.client} | {
            "collectives": collectives
        }

    def plugin_options(self) -> dict[str, Any]:
        """Return the options of a plugin's client, besides the client of the service."""
        return {"node_id": self.process, "num_nodes": self.processes}

    # Calls of programs over all processes.

    @contextmanager
    def call(self) -> Generator[None, None, None]:
        """Run a program in which processes wait for each other; raise errors that say why not."""
        self.require()
        thread = threading.get_ident()
        if self._thread not in (0, thread):
            raise DistributedError(
                "programs over several processes run in one thread: calls from others, whose order "
                "may differ between processes, are not supported yet"
            )
        self._thread = thread
        self._calls, self._since = self._calls + 1, time.monotonic()
        try:
            yield
        except Exception as error:
            if isinstance(error, DistributedError) or "JaxRuntimeError" not in type(error).__name__:
                raise
            end = time.monotonic() + min(2.0, self.heartbeat)
            while not (self.lost or self._finished) and time.monotonic() < end:
                time.sleep(0.02)
            reason = str(error).partition("\n")[0]
            raise DistributedError(f"{self._reason()}. Start the job again. ({reason})") from error
        finally:
            self._calls -= 1

    def _reason(self) -> str:
        if self.lost is not None:
            return self.lost
        for name in self._finished.values():
            return f"{name} has finished"
        return "a collective failed"

    def require(self) -> None:
        """Raise a DistributedError if a process was lost."""
        if self.lost is not None:
            raise DistributedError(f"{self.lost}. Start the job again.")

    def agree(self, what: str, content: Mapping[str, str]) -> None:
        """Raise a DistributedError unless all processes come here with the same content.

        Only what several of them have is compared.
        """
        if self.processes == 1:
            return
        mine = {"what": what, **content}
        self._agreed += 1
        place = f"pscdsl/agree/{self._agreed}"
        self.client.key_value_set(f"{place}/{self.process}", json.dumps(mine))
        for other in range(self.processes):
            if other == self.process:
                continue
            theirs: dict[str, str] = json.loads(self._value(f"{place}/{other}", what, other))
            for name, value in mine.items():
                if theirs.get(name, value) == value:
                    continue
                if name == "what":
                    text = f"process {self.process} comes to {value}, process {other} to "
                    text += theirs[name]
                else:
                    text = f"{what} differs between processes {self.process} and {other}: {name}"
                raise DistributedError(f"{text}. All processes have to make the same calls")

    def agree_once(self, what: str, content: Mapping[str, str]) -> None:
        """Call `agree` unless the processes have agreed on this before."""
        key = what, tuple(content.items())
        if key not in self._known:
            self.agree(what, content)
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            self._known.add(key)

    def _value(self, key: str, what: str, other: int) -> str:
        from pscdsl._src.xla.runtime import boot

        end = time.monotonic() + self.timeout
        while True:
            self.require()
            try:
                text: str = self.client.blocking_key_value_get(key, 200)
                return text
            except boot.jax.JaxRuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    self.require()
                    raise DistributedError(f"the coordination service failed: {error}") from error
                if other in self._finished:
                    raise DistributedError(
                        f"{self._finished[other]} has finished, and did not come to {what}"
                    ) from None
                if time.monotonic() > end:
                    raise DistributedError(
                        f"process {other} did not come to {what} in {self.timeout:g} s"
                    ) from None

    # Watching the other processes.

    def _watch(self) -> None:
        tick = min(1.0, self.heartbeat / 8)
        beat, last = 0.0, time.monotonic()
        with selectors.DefaultSelector() as selector:
            for peer in self._peers.values():
                peer.connection.setblocking(True)
                peer.connection.settimeout(tick)
                peer.heard = time.monotonic()
                selector.register(peer.connection, selectors.EVENT_READ, peer)
            while not self._ended.is_set():
                for key, _ in selector.select(tick):
                    self._read(key.data, selector)
                now = time.monotonic()
                if now - last > 3 * tick:  # this process was stopped, and maybe all were
                    self._since += now - last
                    for peer in self._peers.values():
                        peer.heard += now - last
                last = now
                if now - beat >= tick:
                    beat = now
                    for peer in self._peers.values():
                        if not peer.is_done:
                            peer.say(_BEAT)
                for peer in self._peers.values():
                    if not peer.is_done and now - peer.heard > 0.75 * self.heartbeat:
                        self._lose(f"{peer.name} has not answered for {now - peer.heard:.1f} s")
                self._end_if_stuck(now)

    def _read(self, peer: _Peer, selector: selectors.BaseSelector) -> None:
        try:
            for word, content in peer.messages():
                if word == _BYE:
                    peer.is_done = True
                    self._done(peer.hello["process"], peer.name)
                elif word == _DONE:
                    self._done(*content)
                elif word == _FAILED:
                    peer.is_done = True
                    self._lose(f"{peer.name} has failed with {content}")
                elif word == _LOST:
                    self._lose(str(content))
        except (OSError, ValueError):
            selector.unregister(peer.connection)
            if not peer.is_done:
                peer.is_done = True
                self._lose(f"{peer.name} has ended")
            peer.connection.close()

    def _done(self, process: int, name: str) -> None:
        """Note that a process has finished; from process 0 on, all hear of it."""
        self._finished[process] = name
        if self.process == 0:
            for peer in self._peers.values():
                if not peer.is_done:
                    peer.say(_DONE, (process, name))

    def _lose(self, text: str) -> None:
        if self.lost is not None:
            return
        self._lost_at = time.monotonic()
        self.lost = text
        log.error("process %d of %d: %s", self.process, self.processes, text)
        if self.process == 0:
            for peer in self._peers.values():
                if not peer.is_done:
                    peer.say(_LOST, text)

    def _end_if_stuck(self, now: float) -> None:
        """End this process if it waits in a collective for one that is lost."""
        if not self._calls:
            return
        if self.lost is not None:
            stuck = now - max(self._lost_at, self._since) > max(1.0, 0.25 * self.heartbeat)
        else:  # process 0 has finished, and calls nothing more
            stuck = (
                self.process > 0
                and self._peers[0].is_done
                and now - max(self._peers[0].heard, self._since) > self.timeout
            )
        if stuck:
            text = self._reason()
            sys.stderr.write(
                f"pscdsl: process {self.process} of {self.processes} waits in a collective, and "
                f"{text}: it is ended\n"
            )
            sys.stderr.flush()
            os._exit(70)

    # The end.

    def _finish(self) -> None:
        """Leave the job: the client before the service, and process 0 after the others."""
        error = _last_error()
        if self.lost is None and error is not None and error is not self._before:
            word, text = _FAILED, f"{type(error).__name__}: {error}".partition("\n")[0]
            if self.process == 0:
                self._tell_lost(text)
        else:
            word, text = _BYE, ""
        for peer in self._peers.values():
            if not peer.is_done or self.process > 0:
                peer.say(word, text)
        if self.process == 0:
            while self.lost is None and not all(each.is_done for each in self._peers.values()):
                time.sleep(0.01)
            end = time.monotonic() + self.heartbeat
            while not all(each.is_done for each in self._peers.values()):
                if time.monotonic() > end:
                    break
                time.sleep(0.01)
        with suppress(Exception):
            self.client.shutdown()
        if self.service is not None:
            with suppress(Exception):
                self.service.shutdown()
        self._ended.set()

    def _tell_lost(self, text: str) -> None:
        hello = f"process 0 (pid {os.getpid()} on {platform.node()})"
        for peer in self._peers.values():
            if not peer.is_done:
                peer.say(_LOST, f"{hello} has failed with {text}")


def _last_error() -> BaseException | None:
    """Return the exception that nobody has caught, if there was one."""
    return getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)


class _Meeting:
    """The processes of a job come together at process 0."""

    def __init__(self, launch: Launch, timeout: float, hello: dict[str, Any]) -> None:
        self.launch = launch
        self.timeout = timeout
        self.end = time.monotonic() + timeout
        self.hello = hello
        self.peers: dict[int, _Peer] = {}

    def close(self) -> None:
        for peer in self.peers.values():
            peer.close()

    # Process 0.

    def host(self) -> tuple[str, str, str]:
        """Wait for all processes; return where they met, this host, and where the service is."""
        launch = self.launch
        name, port = ("127.0.0.1", 0) if launch.address is None else _split(launch.address)
        try:
            listener = _listener(name, port)
        except OSError as error:
            raise DistributedError(
                f"process 0 cannot listen at {launch.address}: {error.strerror or error}"
            ) from None
        host, port = listener.getsockname()[:2]
        note = None
        with listener:
            if launch.address is None:
                self.hello["token"] = secrets.token_hex(16)
                note = _note(launch.key)
                _write(note, f"{port} {self.hello['token']}")
            try:
                self._gather(listener)
            finally:
                if note is not None:
                    note.unlink(missing_ok=True)
        here = name if host == "0.0.0.0" else host
        return f"{name}:{port}", here, f"{here}:{_free_port(here)}"

    def _gather(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ, None)
            while len(self.peers) < self.launch.processes - 1:
                if time.monotonic() > self.end:
                    missing = {*range(1, self.launch.processes)} - {*self.peers}
                    self._refuse(
                        f"{_processes(sorted(missing))} of {self.launch.processes} did not come to "
                        f"process 0 in {self.timeout:g} s"
                    )
                for key, _ in selector.select(0.1):
                    if key.data is None:
                        with suppress(OSError):
                            connection, _ = listener.accept()
                            connection.setblocking(False)
                            selector.register(connection, selectors.EVENT_READ, _Peer(connection))
                    else:
                        self._hear(key.data, selector)

    def _hear(self, peer: _Peer, selector: selectors.BaseSelector) -> None:
        try:
            for word, content in peer.messages():
                if word != "hello" or content.get("token") != self.hello.get("token"):
                    raise ValueError("not one of ours")
                peer.hello = content
                problem = self._problem(content)
                if problem:
                    peer.say(_LOST, problem)
                    self._refuse(problem)
                self.peers[content["process"]] = peer
        except (OSError, ValueError, AttributeError, KeyError, TypeError):
            selector.unregister(peer.connection)
            known = peer.hello.get("process")
            if known in self.peers:
                self._refuse(f"{peer.name} has ended before all processes had come")
            peer.close()  # somebody else's

    def _problem(self, theirs: Mapping[str, Any]) -> str:
        """Return in which way a process does not belong to this job, or nothing."""
        process, total = theirs["process"], theirs["processes"]
        where = f"process {process} (pid {theirs['pid']} on {theirs['host']})"
        if total != self.launch.processes:
            return (
                f"{where} says that there are {total} processes, and process 0 that there are "
                f"{self.launch.processes}"
            )
        if process in self.peers or process == 0:
            return f"there are two processes {process}: {where} is another one"
        mine, its = self.hello["facts"], theirs["facts"]
        for name in mine:
            if mine[name] != its.get(name):
                return (
                    f"{where} has another value for {name}: {its.get(name)}, and process 0 has "
                    f"{mine[name]}"
                )
        return ""

    def _refuse(self, text: str) -> None:
        for peer in self.peers.values():
            peer.say(_LOST, text)
        self.close()
        raise DistributedError(text)

    # The others.

    def join(self) -> tuple[str, str, str]:
        """Connect to process 0; return where, this host as seen from there, and the service."""
        launch = self.launch
        peer = _Peer(self._reach())
        peer.hello = {"process": 0, "pid": "unknown", "host": launch.address or "this host"}
        peer.connection.setblocking(True)
        peer.connection.settimeout(1.0)
        peer.say("hello", self.hello)
        self.peers[0] = peer
        here = peer.connection.getsockname()[0]
        there = ":".join(map(str, peer.connection.getpeername()[:2]))
        while time.monotonic() < self.end + 10:
            try:
                for word, content in peer.messages():
                    if word == "service":
                        peer.hello = {**peer.hello, "host": there}
                        return launch.address or there, here, str(content)
                    if word == _LOST:
                        raise DistributedError(str(content))
            except TimeoutError:
                continue
            except (OSError, ValueError):
                raise DistributedError(
                    f"process 0 at {there} has ended before all processes had come, or is none of "
                    "this job"
                ) from None
        raise DistributedError(f"process 0 at {there} has not answered in {self.timeout:g} s")

    def _reach(self) -> socket.socket:
        """Return a connection to process 0, which may not be there yet."""
        launch, problem = self.launch, "it has said nothing of itself"
        while True:
            name, port = "127.0.0.1", 0
            if launch.address is None:
                known = _read(_note(launch.key)).split()
                if len(known) == 2 and known[0].isdecimal():
                    port, self.hello["token"] = int(known[0]), known[1]
            else:
                name, port = _split(launch.address)
            if port:
                try:
                    return socket.create_connection((name, port), 1.0)
                except OSError as error:
                    problem = f"{name}:{port}: {error.strerror or error}"
            if time.monotonic() > self.end:
                raise DistributedError(
                    f"process {launch.process} of {launch.processes} found no process 0 in "
                    f"{self.timeout:g} s ({problem})"
                )
            time.sleep(0.1)


def _processes(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"process {numbers[0]}"
    shown = ", ".join(map(str, numbers[:8])) + (" and others" if len(numbers) > 8 else "")
    return f"processes {shown}"


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _listener(name: str, port: int) -> socket.socket:
    """Return a socket that listens where a name leads, if that is here, or else everywhere."""
    try:
        return socket.create_server((name, port), backlog=1024)
    except OSError as error:
        if not port or isinstance(error, PermissionError) or _is_taken(error):
            raise
        return socket.create_server(("0.0.0.0", port), backlog=1024)


def _is_taken(error: OSError) -> bool:
    import errno

    return error.errno == errno.EADDRINUSE


def _free_port(name: str) -> int:
    with socket.create_server((name, 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _note(key: str) -> Path:
    """Return the file in which process 0 says where it listens, to others on this host."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir(), f"pscdsl-{user}-{key}")


def _write(note: Path, text: str) -> None:
    """Write a file that only this user can read, all of it or nothing."""
    new = note.with_name(f"{note.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(note)


def _read(note: Path) -> str:
    """Return what such a file says; nothing if it is not there, or of another user."""
    try:
        if hasattr(os, "getuid") and note.lstat().st_uid != os.getuid():
            return ""
        return note.read_text()
    except OSError:
        return ""
