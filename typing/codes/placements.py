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
