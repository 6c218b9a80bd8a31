"""On which device a program is compiled and run: a small record that is passed down.

A `Device` is named before anything runs: a kernel names it in its `Specialisation`, and the
dispatcher, the compiler and the executable store take it from there.  jaxlib is loaded, and the
client of the platform is made, when something is to run there: by `Device.placement`, and nowhere
else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pscdsl._src.xla.runtime.devices import Placement

PLATFORMS: Final = ("cpu",)
"""The platforms that programs run on."""


class UnsupportedDeviceError(NotImplementedError):
    """A device of a platform that programs do not run on yet, or one that this machine lacks."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a platform, by its number among those of this machine."""

    platform: str = "cpu"
    """The name that XLA has for the platform."""
    number: int = 0

    @property
    def placement(self) -> Placement:
        """How arrays get to the device; an `UnsupportedDeviceError` if they cannot.

        The first time, this makes the client of the platform.
        """
        from pscdsl._src.xla.runtime.devices import placement

        return placement(self)

    @property
    def client(self) -> Any:
        """Jaxlib's client of the platform, made when it is first needed."""
        return self.placement.client

    def require_supported(self) -> None:
        """An `UnsupportedDeviceError` if programs do not run on the platform."""
        if self.platform not in PLATFORMS:
            raise UnsupportedDeviceError(
                f"devices of platform `{self.platform}` are not supported yet: kernels run on "
                f"{', '.join(PLATFORMS)}"
            )

    def __str__(self) -> str:
        return f"{self.platform}:{self.number}"


CPU: Final = Device("cpu", 0)
"""The device that kernels run on where nothing else is asked for."""
