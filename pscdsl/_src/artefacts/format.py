"""Artefacts as files: the parts of an exported kernel, its signature, reading and writing."""

from __future__ import annotations

import hmac
import json
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pscdsl._src.artefacts.json_forms import (
    array_form,
    array_of,
    choice_form,
    choice_of,
    decoded,
    encoded,
    number,
    signature_form,
    signature_of,
    type_form,
    type_of,
)
from pscdsl._src.support.paths import Folder, is_secret, real
from pscdsl._src.support.tracebacks import UsersError
from pscdsl.typing.array_types import ArrayType, Type, leaves
from pscdsl.typing.assumptions import Assumptions, parse_fact
from pscdsl.typing.placements import Placement
from pscdsl.typing.signatures import Choice, Instantiation, Signature

# The parts of an exported kernel.
#
# Three functions connect this with everything else: `writing.written` makes bytes of an artefact,
# `reading.read` an artefact of bytes, and `exporting.artefact` of `kernels` an artefact of a
# kernel.


Target: TypeAlias = Literal["any", "cpu"]
"""Where modules may run: everywhere, or only on CPUs, compiled by forms that are fast there."""
TARGETS: Final[tuple[Target, ...]] = ("any", "cpu")


class ArtefactError(UsersError, ValueError):
    """A file is not an exported kernel, is damaged, or cannot be used here.

    Examples:
        >>> psc.load(b"something else")
        Traceback (most recent call last):
        pscdsl.ArtefactError: it does not begin as an exported kernel does
    """

    __module__ = "pscdsl"


@dataclass(frozen=True)
class OnMesh:
    """The mesh that a program is for, and where its arrays lie."""

    axes: tuple[tuple[str, int], ...]
    """The size of each axis, in order."""
    arguments: tuple[Placement, ...]
    results: tuple[Placement, ...]

    @property
    def devices(self) -> int:
        """The number of devices."""
        return prod([size for _, size in self.axes])

    def pieces(
        self, types: Sequence[ArrayType], placements: Sequence[Placement]
    ) -> list[ArrayType]:
        """Return the types of the pieces of arrays; their sizes are numbers that divide."""
        cuts = [placement.cuts(dict(self.axes)) for placement in placements]
        return [
            type_.with_shape(tuple([size // n for size, n in zip(type_.shape, each, strict=True)]))
            for type_, each in zip(types, cuts, strict=True)
        ]

    def __str__(self) -> str:
        return f"Mesh({', '.join([f'{name}={size}' for name, size in self.axes])})"


@dataclass(frozen=True)
class SizedProgram:
    """A program at certain sizes."""

    sizes: Mapping[str, int]
    code: bytes
    """StableHLO as a portable artefact: one public function `main`, from arrays to arrays."""
    calls: tuple[str, ...] = ()
    """The targets of its custom calls, which the program that runs it must know."""
    donate: tuple[int, ...] = ()
    """The arrays, by their place, that give their memory to results."""
    mesh: OnMesh | None = None
    """The mesh that each of its devices runs it on; None if it runs on one device."""


@dataclass(frozen=True)
class StoredProgram:
    """A kernel with choices for everything that its signature leaves open, except sizes."""

    choice: Choice
    dims: tuple[str, ...]
    facts: Assumptions
    """The facts that sizes must satisfy."""
    inputs: tuple[ArrayType, ...]
    """The arrays that `main` takes, in order, with names for sizes."""
    result: Type
    """The tree of the results; `main` gives its arrays in order."""
    fingerprint: str
    """A text that is equal for equal programs; empty if the program has no fingerprint."""
    modules: tuple[SizedProgram, ...]


@dataclass(frozen=True)
class Artefact:
    """An exported kernel."""

    version: str
    """The version of pscdsl that wrote it."""
    stablehlo: str
    """The version of StableHLO that the modules are written in."""
    target: Target
    signature: Signature
    defaults: Mapping[str, object]
    """The defaults of parameters that can be written down."""
    donate: tuple[str, ...]
    """The parameters that give their memory to results."""
    source_hash: str
    """SHA-256 of the source text of the kernel and all that it calls."""
    programs: tuple[StoredProgram, ...]


# Trust in artefacts: keys, and the user's own key.
#
# XLA's reader and compiler trust the contents of an artefact, and make machine code of them. No
# check of ours makes that safe. So an artefact is signed with a key, and read only if the signature
# is correct: without the key, no one can make one.
#
# The first export makes the user's key, in a place where no artefact, cache or checkout can have
# put it: PSCDSL_KEY names the file, otherwise it is `key` in the user's folder for settings.


Trust: TypeAlias = bytes | Literal["user", "anyone"]
"""The accepted signatures: those of a given key, of the user's own, or any."""
VARIABLE: Final = "PSCDSL_KEY"
_BYTES: Final = 32
"""The length of a key made here."""
_LEAST: Final = 16
"""The least bytes of a given key: a shorter one could be guessed."""
_MOST: Final = 1 << 12
_HELP: Final = (
    "What is loaded becomes machine code, so trust whom you would let run programs: "
    '`trust=KEY` takes what was exported with `key=KEY`, `trust="anyone"` takes anything'
)


class NoKey(ArtefactError):
    """The user has no key, or none that is safe; says why."""


def signing_key(given: object) -> bytes:
    """Return the key that an export signs with: the given one, or the user's for None."""
    if given is not None:
        return _check_key(given, "key")
    try:
        return user_key(make=True)
    except NoKey as problem:
        raise ArtefactError(
            f"there is no key to sign the artefact with: {problem}. Give one, "
            f"`export(path, key=KEY)`, of {_LEAST} bytes or more, as `secrets.token_bytes(32)` "
            f"makes it, or name a file for it in ${VARIABLE}"
        ) from None


def trusted_key(trust: object) -> bytes | None:
    """Return the key with which an artefact has to be signed; None if any key will do."""
    if isinstance(trust, str):
        if trust == "anyone":
            return None
        if trust == "user":
            try:
                return user_key()
            except NoKey as problem:
                raise ArtefactError(f"it is not known to be yours: {problem}. {_HELP}") from None
    return _check_key(trust, "trust")


def other_key(trust: object) -> str:
    """Return the message about an intact artefact that is signed with another key."""
    if isinstance(trust, str):
        return f"it is not signed with your key, {_file()}, but with another one. {_HELP}"
    return "it is not signed with the key that `trust` gives, but with another one"


def _check_key(key: object, name: str) -> bytes:
    if not isinstance(key, bytes):
        words = ', "user" or "anyone"' if name == "trust" else ""
        raise ArtefactError(f"`{name}` is a key, as bytes{words}; it is {type(key).__name__}")
    if len(key) < _LEAST:
        raise ArtefactError(f"`{name}` is a key of {len(key)} bytes; it needs {_LEAST} or more")
    return key


def user_key(*, make: bool = False) -> bytes:
    """Return the user's key, made if missing and wanted; raise `NoKey` if none is safe."""
    file = _file()
    place = real(str(file))
    if place is None:
        raise NoKey(f"{file} cannot be followed")
    try:
        with Folder(os.path.dirname(place), make=make) as folder:
            if not folder.is_private():
                raise NoKey(f"{folder.path} is another user's, or others can write in it")
            return _key(folder, os.path.basename(place), place, make)
    except FileNotFoundError:
        raise NoKey(f"there is no key yet, {file}; the first export makes it") from None
    except (OSError, ValueError) as problem:
        if isinstance(problem, NoKey):
            raise
        reason = getattr(problem, "strerror", None) or problem
        action = "made or read" if make else "read"
        raise NoKey(f"the key, {file}, cannot be {action}: {reason}") from None


def _key(folder: Folder, name: str, place: str, make: bool) -> bytes:
    if make and folder.state(name) is None:
        folder.create(name, os.urandom(_BYTES))
    key, state = folder.read(name, _MOST), folder.state(name)
    if state is None or not is_secret(state):
        raise NoKey(f"others can read or write the key, {place}, or it is another user's")
    if len(key) < _LEAST:
        raise NoKey(f"the key, {place}, has {len(key)} bytes; it needs {_LEAST} or more")
    return key


def _file() -> Path:
    """Return the path of the user's key."""
    try:
        given = os.environ.get(VARIABLE, "").strip()
        return Path(given).expanduser() if given else _settings() / "pscdsl" / "key"
    except RuntimeError:
        raise NoKey("this user has no home") from None


def _settings() -> Path:
    """Return the user's folder for settings, as is customary on this system."""
    if sys.platform == "win32":
        roaming = os.environ.get("APPDATA")
        return Path(roaming) if roaming else Path.home() / "AppData" / "Roaming"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    named = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".config"


# Artefacts as files: their layout, reading and writing.
#
#     8 bytes      \x89PSC\r\n\x1a\n: no text, and damaged by whatever changes the ends of lines
#     4 bytes      the version of this form, 2
#     8 bytes      the length of the head
#     32 bytes     SHA-256 of the 12 bytes before and of the head and the modules: of damage
#     32 bytes     HMAC-SHA-256 of all before and after these, with the key of the exporting user
#     the head     JSON in UTF-8; see `written`
#     the modules  one after the other, as long as the head says
#
# Numbers are little-endian.  Nothing in it is a program for Python, and nothing is unpickled.


SUFFIX: Final = ".psca"
"""The default suffix of file names."""
MAGIC: Final = b"\x89PSC\r\n\x1a\n"
VERSION: Final = 2
_NUMBERS: Final = struct.Struct("<IQ")
_SEAL: Final = 32
_SIGNATURE: Final = 32
_SEAL_START: Final = len(MAGIC) + _NUMBERS.size
_SIGNATURE_START: Final = _SEAL_START + _SEAL
_HEAD_START: Final = _SIGNATURE_START + _SIGNATURE
LARGEST: Final = 1 << 31
"""Bytes of the largest file that is written or read."""
LARGEST_HEAD: Final = 1 << 26
MOST_DEVICES: Final = 1 << 20
"""The most devices of a mesh."""


def packed(head: Any, modules: Sequence[bytes], key: bytes) -> bytes:
    """Return the bytes of a file with this head and these modules, signed with a key."""
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    first = text.encode()
    rest = b"".join([first, *modules])
    if len(first) > LARGEST_HEAD or _HEAD_START + len(rest) > LARGEST:
        raise ArtefactError("this is too much for one artefact: export fewer sizes")
    numbers = _NUMBERS.pack(VERSION, len(first))
    before = b"".join([MAGIC, numbers, _seal(numbers, rest)])
    return b"".join([before, _signature(key, before, rest), rest])


def unpacked(data: bytes, trust: Trust) -> tuple[Any, bytes]:
    """Return the head and the bytes of the modules; raise ArtefactError if damaged or untrusted.

    Nothing of it is read before its signature was found to be right, or was not asked for.
    """
    if data[: len(MAGIC)] != MAGIC:
        if not data or MAGIC.startswith(data):
            raise ArtefactError("it is cut off before its first 8 bytes")
        raise ArtefactError("it does not begin as an exported kernel does")
    if len(data) < _HEAD_START:
        raise ArtefactError(f"it is cut off after {len(data)} bytes")
    numbers = data[len(MAGIC) : _SEAL_START]
    version, length = _NUMBERS.unpack(numbers)
    if version != VERSION:
        raise ArtefactError(
            f"it is of form {version}, or damaged; this pscdsl reads form {VERSION}: export it anew"
        )
    rest = memoryview(data)[_HEAD_START:]
    if data[_SEAL_START:_SIGNATURE_START] != _seal(numbers, rest):
        raise ArtefactError("it is damaged or cut off: its content is not what was written")
    key = trusted_key(trust)
    if key is not None:
        wanted = _signature(key, data[:_SIGNATURE_START], rest)
        if not hmac.compare_digest(data[_SIGNATURE_START:_HEAD_START], wanted):
            raise ArtefactError(other_key(trust))
    if length > min(len(rest), LARGEST_HEAD):
        raise ArtefactError("it says that its head is longer than it can be")
    try:
        return json.loads(bytes(rest[:length])), bytes(rest[length:])
    except (ValueError, RecursionError) as problem:
        raise ArtefactError(f"its head cannot be read: {problem}") from None


def _seal(numbers: bytes, rest: bytes | memoryview) -> bytes:
    made = sha256(numbers)
    made.update(rest)
    return made.digest()


def _signature(key: bytes, before: bytes, rest: bytes | memoryview) -> bytes:
    made = hmac.new(key, before, "sha256")
    made.update(rest)
    return made.digest()


# Reading an artefact from a file as data: every defect raises an ArtefactError.


def read(data: bytes, trust: Trust = "user") -> Artefact:
    """Return the artefact that `written` wrote, if its signature is to be trusted."""
    if len(data) > LARGEST:
        raise ArtefactError(f"it is larger than {LARGEST} bytes")
    head, codes = unpacked(data, trust)
    try:
        return _artefact(head, codes)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        if isinstance(problem, ArtefactError):
            raise
        reason = f"{type(problem).__name__}: {problem}"
        raise ArtefactError(f"its head does not say what it should ({reason})") from None
    except RecursionError:
        raise ArtefactError("its head is nested too deeply") from None


def _artefact(head: Any, codes: bytes) -> Artefact:
    signature = signature_of(head["types"])
    names = [parameter.name for parameter in signature.parameters]
    if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        raise ValueError("names of parameters")
    target: Target = TARGETS[TARGETS.index(head["target"])]
    donated = tuple([names[names.index(each)] for each in head["donate"]])
    programs: list[StoredProgram] = []
    for form in head["programs"]:
        program, codes = _program_of(form, codes)
        _require_consistent(program, signature, donated)
        programs.append(program)
    if codes or not programs:
        raise ValueError("the modules are not as long as the head says")
    return Artefact(
        str(head["version"]),
        str(head["stablehlo"]),
        target,
        signature,
        {name: decoded(each) for name, each in head["defaults"].items() if name in names},
        donated,
        str(head["source"]),
        tuple(programs),
    )


def _program_of(form: Any, codes: bytes) -> tuple[StoredProgram, bytes]:
    """Return a program with its modules from the front of `codes`, and the rest of `codes`."""
    dims = tuple([str(each) for each in form["dims"]])
    facts = tuple([fact for text in form["preconditions"] for fact in parse_fact(text)])
    inputs = tuple([array_of(each) for each in form["inputs"]])
    modules: list[SizedProgram] = []
    for each in form["modules"]:
        sizes = {name: number(each["sizes"][name]) for name in dims}
        calls = tuple([str(call) for call in each["calls"]])
        donate = tuple([number(place) for place in each["donate"]])
        length = number(each["length"])
        if length > len(codes):
            raise ValueError("a module is longer than what is there")
        mesh = _mesh_of(each["mesh"]) if "mesh" in each else None
        modules.append(SizedProgram(sizes, codes[:length], calls, donate, mesh))
        codes = codes[length:]
    made = StoredProgram(
        choice_of(form["choice"]),
        dims,
        Assumptions(facts),
        inputs,
        type_of(form["result"]),
        str(form["fingerprint"]),
        tuple(modules),
    )
    return made, codes


def _mesh_of(form: Any) -> OnMesh:
    """Return the mesh that `_mesh_form` wrote."""
    axes = tuple([(str(name), number(size)) for name, size in form["axes"]])
    names = [name for name, _ in axes]
    if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        raise ValueError("names of axes")
    arguments, results = (
        tuple([Placement.parse(text) for text in form[side]]) for side in ("arguments", "results")
    )
    made = OnMesh(axes, arguments, results)
    used = {name for each in (*arguments, *results) for name in each.used}
    if not used <= {*names} or not 0 < made.devices <= MOST_DEVICES:
        raise ValueError("a mesh")
    return made


def _require_pieces(program: StoredProgram, module: SizedProgram, mesh: OnMesh) -> None:
    """Refuse placements of other arrays, and sizes that have no equal pieces."""
    sides = (program.inputs, mesh.arguments), (tuple(leaves(program.result)), mesh.results)
    for types, placements in sides:
        for type_, placement in zip(types, placements, strict=True):
            shape = type_.substitute(dict(module.sizes)).shape
            cuts = placement.cuts(dict(mesh.axes))
            if any(size % n for size, n in zip(shape, cuts, strict=True)):
                raise ValueError("an array without equal pieces")


def _require_consistent(
    program: StoredProgram, signature: Signature, donated: Sequence[str]
) -> None:
    """Refuse a program that takes or gives away other arrays than its signature says.

    Refuse also a program with arrays of unknown sizes.
    """
    types = Instantiation(program.choice)
    owners: list[str] = []
    inputs: list[ArrayType] = []
    for parameter in signature.parameters:
        arrays = list(leaves(types.type_of(parameter.spec, parameter.name)))
        inputs += arrays
        owners += [parameter.name] * len(arrays)
    if tuple(inputs) != program.inputs:
        raise ValueError("the arrays of a program are not those of the signature")
    given = [place for module in program.modules for place in module.donate]
    if any(place >= len(owners) or owners[place] not in donated for place in given):
        raise ValueError("a program gives away the memory of other parameters")
    none: frozenset[str] = frozenset()
    known = none.union(*[operand.names() for operand in program.inputs])
    used = none.union(*[leaf.names() for leaf in leaves(program.result)])
    asked = none.union(*[fact.names() for fact in program.facts.facts])
    if known != frozenset(program.dims) or not used | asked <= known:
        raise ValueError("a size is not known")
    for module in program.modules:
        if module.mesh is not None:
            _require_pieces(program, module, module.mesh)


# An artefact as bytes: the head of a file.
#
# version, stablehlo, target, source   as in `Artefact`
# name, signature                      for people; `types` has the signature as data
# defaults, donate                     of parameters
# programs                             for each: choice, dims, preconditions, inputs, result,
#                                      fingerprint, and its modules: sizes, calls, donate, length,
#                                      and for those on a mesh its axes and all placements
#
# Texts are in normal form: `preconditions` are comparisons such as `n % 2 == 0`, sizes in types are
# expressions such as `n+1`.


def written(artefact: Artefact, key: bytes) -> bytes:
    """Return the bytes of a file, signed with a key.

    Raise `NotWritable` for a static value that cannot be stored.
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
        "programs": [_program_form(program) for program in artefact.programs],
    }
    modules = [module.code for program in artefact.programs for module in program.modules]
    return packed(head, modules, key)


def _program_form(program: StoredProgram) -> dict[str, Any]:
    return {
        "choice": choice_form(program.choice),
        "dims": list(program.dims),
        "preconditions": [str(fact) for fact in program.facts.facts],
        "inputs": [array_form(operand) for operand in program.inputs],
        "result": type_form(program.result),
        "fingerprint": program.fingerprint,
        "modules": [
            {
                "sizes": dict(module.sizes),
                "calls": list(module.calls),
                "donate": list(module.donate),
                "length": len(module.code),
                **({} if module.mesh is None else {"mesh": _mesh_form(module.mesh)}),
            }
            for module in program.modules
        ],
    }


def _mesh_form(mesh: OnMesh) -> dict[str, Any]:
    return {
        "axes": [list(each) for each in mesh.axes],
        "arguments": [str(each) for each in mesh.arguments],
        "results": [str(each) for each in mesh.results],
    }
