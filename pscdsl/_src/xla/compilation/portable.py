"""Modules in the form that outlives jaxlib's versions: StableHLO's portable artefacts.

They are written in a fixed version of StableHLO, which every jaxlib that this package takes reads,
as does whatever else has a StableHLO of that version or a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pscdsl._src.xla.compilation.ahead import Unreadable
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.emit import module_bytecode
from pscdsl._src.xla.runtime import boot, lapack

VERSION: Final = "1.9.0"
"""Of StableHLO: that of jaxlib is later.  Before it, calls of LAPACK's routines cannot be said."""


def portable(module: Any) -> bytes:
    """A module as a portable artefact, without the places in the source it came from."""
    dialect, passes = boot.untyped("mlir.dialects.stablehlo"), boot.untyped("mlir.passmanager")
    _register_passes()
    with c.context():
        copy = module.operation.clone()
        for each in ("func.func(chlo-legalize-to-stablehlo)", "strip-debuginfo"):
            passes.PassManager.parse(f"builtin.module({each})").run(copy)
        plain = c.mlir.Module.parse(module_bytecode(copy))
        code: bytes = dialect.serialize_portable_artifact(plain, VERSION)
        return code


@boot.once
def _register_passes() -> None:
    boot.untyped("mlir.dialects.stablehlo").register_stablehlo_passes()


def module_of(code: bytes) -> Any:
    """The module of a portable artefact."""
    try:
        found = boot.untyped("mlir.dialects.stablehlo").deserialize_portable_artifact(
            c.context(), code
        )
        found.operation.verify()
    except Exception as problem:  # ValueError or MLIRError, by version
        raise Unreadable(str(problem)) from None
    return found


def targets(module: Any) -> list[str]:
    """The targets of a module's custom calls: LAPACK's, or a user's, or Python functions."""
    found: dict[str, None] = {}

    def visit(operation: Any) -> Any:
        if operation.name.endswith(".custom_call"):
            found[operation.attributes["call_target_name"].value] = None
        return c.mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return sorted(found)


def foreign(calls: Sequence[str]) -> list[str]:
    """Those of some custom calls that are not LAPACK's."""
    return [each for each in calls if not each.startswith(lapack.PREFIX)]
