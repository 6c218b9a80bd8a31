"""Launchers of several processes: what each of them says in the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pscdsl._src.support.tracebacks import UsersError


class DistributedError(UsersError, RuntimeError):
    """Processes that are missing, have ended, or do not run the same program.

    Examples:
        >>> issubclass(psc.distributed.DistributedError, RuntimeError)
        True
    """

    __module__ = "pscdsl.distributed"


@dataclass(frozen=True, slots=True)
class Launch:
    """The place of this process among those that were launched together."""

    launcher: str
    process: int
    processes: int
    address: str | None
    """Where process 0 listens, as host:port; None if all processes are on this host."""
    key: str = ""
    """A word that only the processes of this job have, where there is no address."""


@dataclass(frozen=True, slots=True)
class _Variables:
    launcher: str
    process: str
    processes: str
    on_this_host: str = ""
    """The variable with the number of processes on this host."""


_MPI: Final = (
    _Variables(
        "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"
    ),
    _Variables("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
)
_UNKNOWN: Final = (
    *("PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PALS_RANKID", "FLUX_TASK_RANK"),
    *("JSM_NAMESPACE_RANK", "SLURM_STEP_NUM_TASKS"),
)
"""Variables of launchers without all that is needed."""
_PARENTS: Final = ("hydra_pmi_proxy", "prted", "prterun", "orted", "mpirun", "mpiexec")
"""The names of launchers' processes, of which those of a job on a host have the same one."""


def found(environment: Mapping[str, str] = os.environ) -> Launch | None:
    """Return what the launcher says, or None if there is none; raise if that is not enough."""
    torch = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    if all(name in environment for name in torch):
        process, processes, port = (_number(environment, torch[at]) for at in (0, 1, 3))
        # Torch's own store listens at the port.
        port += "TORCHELASTIC_RUN_ID" in environment
        return Launch("torchrun", process, processes, f"{environment['MASTER_ADDR']}:{port}")
    for each in _MPI:
        if each.process in environment and each.processes in environment:
            return _of_mpi(each, environment)
    if "SLURM_PROCID" in environment and "SLURM_STEP_NUM_TASKS" in environment:
        return _of_slurm(environment)
    unknown = [name for name in _UNKNOWN if name in environment]
    if unknown:
        raise DistributedError(
            f"the environment has {', '.join(unknown)}, but not all that is needed to find the "
            "other processes: give `address`, `processes` and `process`"
        )
    return None


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name].strip()
    if not text.isdecimal():
        raise DistributedError(f"the environment variable {name} is `{text}`, and no number")
    return int(text)


def _master(environment: Mapping[str, str]) -> str | None:
    if "MASTER_ADDR" not in environment:
        return None
    if "MASTER_PORT" not in environment:
        raise DistributedError("the environment has MASTER_ADDR, but no MASTER_PORT")
    return f"{environment['MASTER_ADDR']}:{_number(environment, 'MASTER_PORT')}"


def _of_mpi(known: _Variables, environment: Mapping[str, str]) -> Launch:
    process, processes = _number(environment, known.process), _number(environment, known.processes)
    address = _master(environment)
    if address is not None:
        return Launch(known.launcher, process, processes, address)
    here = environment.get(known.on_this_host, "")
    if here != str(processes):
        raise DistributedError(
            f"{known.launcher} started {processes} processes, {here or 'an unknown number'} of "
            "them on this host, and does not say where process 0 is: set MASTER_ADDR and "
            "MASTER_PORT, or give `address`"
        )
    return Launch(known.launcher, process, processes, None, f"{_parent()}-{processes}")


def _of_slurm(environment: Mapping[str, str]) -> Launch:
    process = _number(environment, "SLURM_PROCID")
    processes = _number(environment, "SLURM_STEP_NUM_TASKS")
    address = _master(environment)
    if address is None:
        listed = environment.get("SLURM_STEP_NODELIST", environment.get("SLURM_NODELIST", ""))
        host = first_host(listed)
        if not host or "SLURM_JOB_ID" not in environment:
            raise DistributedError(
                "SLURM does not say on which hosts the step runs: set MASTER_ADDR and MASTER_PORT"
            )
        step = environment.get("SLURM_STEP_ID", "0")
        step = step if step.isdecimal() else "0"
        port = 20_000 + (_number(environment, "SLURM_JOB_ID") * 8 + int(step)) % 10_000
        address = f"{host}:{port}"
    return Launch("SLURM", process, processes, address)


def first_host(listed: str) -> str:
    """Return the first host of SLURM's list: `node[003-007,009],other` gives node003."""
    text = listed.strip()
    match = re.match(r"([^\[,]*)(?:\[([^\],-]*)[^\]]*\]([^\[,]*))?", text)
    if match is None:
        return ""
    before, number, after = match.groups(default="")
    return before + number + after


def _parent() -> int:
    """Return the process of the launcher that is above this one; by default the parent."""
    process = os.getppid()
    try:
        while process > 1:
            status = Path(f"/proc/{process}/status").read_text(errors="replace")
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            if fields["Name"] in _PARENTS:
                return process
            process = int(fields["PPid"])
    except (OSError, KeyError, ValueError):  # not Linux, or not ours to read
        pass
    return os.getppid()
