"""On which device a program is compiled and run: a small record that is passed down.

A `Device` is named before anything runs: a kernel names it in its `Specialisation`, and the
dispatcher, the compiler and the executable store take it from there.  jaxlib is loaded, and the
client of the platform is made, when something is to run there: by `Device.placement`, and nowhere
else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pscdsl._src.support.processes import once
from pscdsl._src.support.tracebacks import UsersError, public

if TYPE_CHECKING:
    from pscdsl._src.xla.cluster import Cluster
    from pscdsl._src.xla.runtime.devices import LiveDevice

PLATFORMS: Final = ("cpu", "cuda", "tpu")
"""The platforms that programs run on."""


class UnsupportedDeviceError(UsersError):
    """A device that is unsupported, not on this machine, or lacks its plugin.

    Examples:
        >>> try:
        ...     psc.devices("tpu")
        ... except psc.UnsupportedDeviceError:
        ...     print("no TPU")
        no TPU
    """

    __module__ = "pscdsl"


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a platform, by its number among those of this machine.

    Examples:
        >>> device = psc.Device("cuda", 1)
        >>> print(device)
        cuda:1
    """

    platform: str = "cpu"
    """The name that XLA has for the platform."""
    number: int = 0
    process: int | None = None
    """The process that has the device, in a job of several; None is this one."""

    @property
    def placement(self) -> LiveDevice:
        """Return the device's placement of arrays, or raise `UnsupportedDeviceError`.

        The first time, this makes the client of the platform.
        """
        from pscdsl._src.xla.runtime.devices import placement

        return placement(self)

    @property
    def client(self) -> Any:
        """Jaxlib's client of the platform, made when it is first needed."""
        return self.placement.client

    def require_supported(self) -> None:
        """Raise an `UnsupportedDeviceError` if programs do not run on the platform."""
        if self.platform not in PLATFORMS:
            raise UnsupportedDeviceError(
                f"devices of platform `{self.platform}` are not supported yet: kernels run on "
                f"{', '.join(PLATFORMS)}"
            )

    def __str__(self) -> str:
        where = "" if self.process is None else f" of process {self.process}"
        return f"{self.platform}:{self.number}{where}"

    def __repr__(self) -> str:
        process = "" if self.process is None else f", process={self.process}"
        return f"Device(platform={self.platform!r}, number={self.number}{process})"

    __module__ = "pscdsl"


CPU: Final = Device("cpu", 0)
"""The device that kernels run on by default."""
PLATFORM_VARIABLE: Final = "PSCDSL_PLATFORM"
"""The environment variable that asks for something else."""
DEVICES_VARIABLE: Final = "PSCDSL_DEVICES"
"""The environment variable with the number of CPU devices in a process."""


class _Job:
    """The job of several processes that this one belongs to; see `cluster`."""

    __slots__ = ("cluster",)

    def __init__(self) -> None:
        self.cluster: Cluster | None = None


JOB: Final = _Job()


@once
def default_device() -> Device:
    """Return the device that kernels run on: `PSCDSL_PLATFORM`, as `cuda` or `cuda:1`, or the CPU.

    A ValueError if the variable names no platform.
    """
    asked = os.environ.get(PLATFORM_VARIABLE, "").strip()
    platform, colon, number = asked.partition(":")
    if not asked:
        return CPU
    if platform not in PLATFORMS or (colon and not number.isdecimal()):
        names = ", ".join(PLATFORMS)
        raise ValueError(
            f"{PLATFORM_VARIABLE} is `{asked}`; it can be {names}, with the number of a device "
            "after a colon: cuda:1"
        )
    return Device(platform, int(number or 0))


@public
def devices(platform: str | None = None) -> tuple[Device, ...]:
    """Return the devices of a platform in this machine, in the order of their numbers.

    In a job of several processes (`psc.distributed.start`) these are the devices of all of them.

    Args:
        platform: `cpu`, `cuda` for NVIDIA's GPUs, or `tpu`; by default the one that kernels run
            on, which the environment variable `PSCDSL_PLATFORM` chooses.

    Raises:
        UnsupportedDeviceError: The platform has no device here, its plugin is not installed, or
            it belongs to another version of jaxlib.

    Examples:
        >>> psc.devices("cpu")
        (Device(platform='cpu', number=0),)
    """
    from pscdsl._src.xla.runtime.devices import all_devices

    return all_devices(default_device() if platform is None else Device(platform))
