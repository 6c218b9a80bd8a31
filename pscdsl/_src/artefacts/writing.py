"""An artefact as bytes: what the head of a file says.

version, stablehlo, target, source   as in `Artefact`
name, signature                      for people; `types` has the signature as data
defaults, donate                     of parameters
programs                             for each: choice, dims, preconditions, inputs, result,
                                     fingerprint, and its modules: sizes, calls, donate, length

Texts are in normal form: `preconditions` are comparisons such as `n % 2 == 0`, sizes in types are
expressions such as `n+1`.
"""

from __future__ import annotations

from typing import Any

from pscdsl._src.artefacts.contents import Artefact, Program
from pscdsl._src.artefacts.layout import packed
from pscdsl._src.artefacts.types import array_form, choice_form, signature_form, type_form
from pscdsl._src.artefacts.values import encoded


def written(artefact: Artefact, key: bytes) -> bytes:
    """The bytes of a file, signed with a key.

    `NotWritable` says of a static value that it is none for files.
    """
    head = {
        "version": artefact.version,
        "stablehlo": artefact.stablehlo,
        "target": artefact.target,
        "source": artefact.source_hash,
        "name": artefact.signature.name,
        "signature": str(artefact.signature),
        "types": signature_form(artefact.signature),
        "defaults": {name: encoded(each) for name, each in artefact.defaults.items()},
        "donate": list(artefact.donate),
        "programs": [_program(each) for each in artefact.programs],
    }
    modules = [each.code for program in artefact.programs for each in program.modules]
    return packed(head, modules, key)


def _program(program: Program) -> dict[str, Any]:
    return {
        "choice": choice_form(program.choice),
        "dims": list(program.dims),
        "preconditions": [str(each) for each in program.facts.facts],
        "inputs": [array_form(each) for each in program.inputs],
        "result": type_form(program.result),
        "fingerprint": program.fingerprint,
        "modules": [
            {
                "sizes": dict(each.sizes),
                "calls": list(each.calls),
                "donate": list(each.donate),
                "length": len(each.code),
            }
            for each in program.modules
        ],
    }
