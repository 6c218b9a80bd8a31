"""PSC34x: placements of arrays along the axes of a mesh that do not fit."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class UnequalPieces(Diagnostic, code="PSC340"):
    """An axis that is cut along a mesh axis has no equal pieces."""

    size: str
    along: str
    pieces: object

    def message(self) -> str:
        return (
            f"an axis of size {self.size} is cut along `{self.along}`, and has no {self.pieces} "
            "equal pieces"
        )

    def help(self) -> str:
        return (
            "pieces are equal where the size is a name, `n@data`: calls then require that "
            "`n % data == 0`"
        )


class AxesDiffer(Diagnostic, code="PSC341"):
    """Operands meet that are cut along different mesh axes."""

    primitive: str
    left: str
    right: str
    wanted: str
    """The placement of the second that fits the first."""

    def message(self) -> str:
        return f"{self.primitive}: {self.left} and {self.right} are cut along different mesh axes"

    def help(self) -> str:
        return (
            f'`psc.place(y, "{self.wanted}")` moves the second to where the first is; a placement '
            "without `@` puts it together on every device"
        )


class MeshAxisMisused(Diagnostic, code="PSC342"):
    """A placement names a mesh axis twice, or as a size."""

    placement: str
    problem: str

    def message(self) -> str:
        return f"the placement `{self.placement}` {self.problem}"

    def help(self) -> str:
        return "a mesh axis cuts one axis of an array, and has a name that no size has"


class NotPartitioned(Diagnostic, code="PSC343"):
    """A program cannot run on the devices of a mesh yet."""

    what: str

    def message(self) -> str:
        return f"{self.what} on the devices of a mesh is not supported yet"

    def help(self) -> str:
        return "call the kernel without a mesh, or do this outside of it"


class NotOnEach(Diagnostic, code="PSC344"):
    """A function of one device's part is used where there is none along the mesh axis."""

    function: str
    axis: str

    def message(self) -> str:
        if self.function == "psc.on_each":
            return f"no parameter of the kernel is cut along the mesh axis `{self.axis}`"
        return f"`{self.function}` along `{self.axis}` is not inside of `psc.on_each` along it"

    def help(self) -> str:
        if self.function == "psc.on_each":
            return f'declare a parameter that is: `f32["n@{self.axis}"]`'
        return f'`psc.on_each("{self.axis}", f)(x)` applies `f` to the piece of each device'


class VariesAlong(Diagnostic, code="PSC345"):
    """A result of `psc.on_each` differs from device to device, and is declared the same."""

    axis: str
    result: str
    type: str

    def message(self) -> str:
        return (
            f"`psc.on_each`: {self.result}, {self.type}, varies along `{self.axis}`, but "
            "`out_axes` is None, so that all devices have the same"
        )

    def help(self) -> str:
        return (
            f'`psc.axis_sum(r, "{self.axis}")` is the same on all devices; `out_axes=0` puts the '
            "pieces of all devices together"
        )


class SummedAgain(Diagnostic, code="PSC346"):
    """A value that all devices have is summed over the devices."""

    axis: str

    def message(self) -> str:
        return (
            f"`psc.axis_sum`: all devices along `{self.axis}` have the same value, and the sum is "
            f"`{self.axis}` times that"
        )

    def help(self) -> str:
        return f'if that is meant, multiply by `psc.axis_size("{self.axis}")`'


class WaitsForOthers(Diagnostic, code="PSC347"):
    """Devices exchange values in a branch or loop that they decide differently."""

    function: str
    axis: str

    def message(self) -> str:
        return (
            f"`{self.function}` along `{self.axis}` is in a branch or loop whose condition varies "
            f"along `{self.axis}`: some devices would wait for others"
        )

    def help(self) -> str:
        return (
            f"call it outside, or make the condition the same on all devices: "
            f'`psc.axis_sum(r, "{self.axis}")`'
        )
