"""Loaded code: its content, the text that it was compiled from, and the modules of a project."""

from __future__ import annotations

import linecache
import os
import struct
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, TypeAlias, Union

# The content of code, independent of the text that it was compiled from and of its file.
#
# Two code objects with the same content behave the same. Python's comparison of code sometimes
# treats 0.0 as -0.0, and before Python 3.12 ignores columns; this one does not.


Constant: TypeAlias = Union[
    "types.CodeType | bool | int | float | complex | str | bytes | types.EllipsisType | None",
    "tuple[Constant, ...]",
    "frozenset[Constant]",
    "slice[Constant, Constant, Constant]",
]
"""A constant of compiled code."""
SIZE: Final = 32
"""The bytes of a digest."""


def content(code: types.CodeType, *, columns: bool = True) -> bytes:
    """Return the digest of a code object without the name of its file.

    Without `columns` only the lines of instructions count, not their columns.
    """
    made = blake2b(digest_size=SIZE)
    places = code.co_linetable if columns else repr(list(code.co_lines())).encode()
    numbers = (
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        *(code.co_flags, code.co_firstlineno),
    )
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    parts: tuple[str | bytes, ...] = (
        *(code.co_name, code.co_qualname, repr(numbers), repr(names)),
        *(code.co_code, code.co_exceptiontable, places),
        *[_constant(constant, columns=columns) for constant in code.co_consts],
    )
    for part in parts:
        data: bytes = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "little") + data)
    return made.digest()


def same(one: types.CodeType, other: types.CodeType) -> bool:
    """Return whether two code objects behave the same at the same places of their texts.

    If one of them was compiled without columns (`python -X no_debug_ranges`), the lines decide.
    """
    if content(one) == content(other):
        return True
    if has_columns(one) and has_columns(other):
        return False
    return content(one, columns=False) == content(other, columns=False)


def has_columns(code: types.CodeType) -> bool:
    """Return whether code has column positions."""
    return any([column is not None for _, _, column, _ in code.co_positions()])


def _constant(value: Constant, *, columns: bool) -> bytes:
    """Encode a constant with its class: True is not 1, and 0.0 not -0.0."""
    match value:
        case types.CodeType():
            return b"code " + content(value, columns=columns)
        case float():
            return b"float " + struct.pack("<d", value)
        case complex():
            return b"complex " + struct.pack("<dd", value.real, value.imag)
        case int() if not isinstance(value, bool):
            return f"int {value:x}".encode()
        case bytes():
            return b"bytes " + value
        case tuple():
            return _joined("tuple", [_constant(each, columns=columns) for each in value])
        case frozenset():
            members = sorted([_constant(each, columns=columns) for each in value])
            return _joined("frozenset", members)
        case slice(start=start, stop=stop, step=step):  # from Python 3.14 on
            bounds = (start, stop, step)
            return _joined("slice", [_constant(bound, columns=columns) for bound in bounds])
        case _:
            return f"{type(value).__name__} {value}".encode(errors="surrogatepass")


def _joined(kind: str, parts: list[bytes]) -> bytes:
    return kind.encode() + b"".join([len(part).to_bytes(8, "little") + part for part in parts])


# The texts of loaded code: files, cells of notebooks, prompts, `python -c`.
#
# Python's `linecache` has the texts of files, and those that IPython, doctest and, from Python 3.13
# on, Python's prompt and `-c` add under names that are no files. Before, `sys.orig_argv` has the
# text of `-c`. The name `<string>` is shared by several programs, so its code is compared with the
# compiled text: `exec`, `dataclass` and `namedtuple` make code with that name, too.


COMMAND: Final = "<string>"
"""Python's name for the text of `-c`, and for any other text without a name."""
_STDIN: Final = "<stdin>"
_WITH_VALUES: Final = frozenset("WX")
"""One-letter options, in addition to `-c` and `-m`, that may take the next word."""

_CELLS: dict[str, str] = {}
"""The names of cells as in messages, with Python's names for them."""


def text_of(
    filename: str, namespace: dict[str, Any] | None = None, code: types.CodeType | None = None
) -> str | None:
    """Return the text that code with this file name was compiled from; None if Python has none.

    `code` is part of the code; without it the result is None for a name that several texts share.
    """
    if filename == COMMAND:
        text = command()
        return text if code is not None and text and code in _codes(text) else None
    found = linecache.getlines(filename, namespace)
    of_code: Callable[[types.CodeType], list[str]] | None
    of_code = getattr(linecache, "_getlines_from_code", None)  # prompts, from Python 3.14 on
    if not found and code is not None and of_code is not None:
        found = of_code(code)
    return "".join(found) or None


def command() -> str | None:
    """Return the text that `python -c` runs in this process; None if it runs something else."""
    return _command(tuple(sys.orig_argv[1:]))


@lru_cache(maxsize=1)
def _command(words: Sequence[str]) -> str | None:
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            return None
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(rest, None)
            continue
        for place, letter in enumerate(word[1:], 2):
            if letter == "c":
                text = word[place:] or next(rest, None)
                if text is not None and sys.version_info >= (3, 14):
                    text = textwrap.dedent(text)  # as Python does
                return None if text is None else text + "\n"
            if letter == "m":
                return None
            if letter in _WITH_VALUES:
                if not word[place:]:
                    next(rest, None)
                break
    return None


@lru_cache(maxsize=1)
def _codes(text: str) -> frozenset[types.CodeType]:
    """Return all code objects of a program as they are when loaded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python has already warned
            return frozenset(_inner(compile(text, COMMAND, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _inner(constant)


def is_file(filename: str) -> bool:
    """Return whether a name is a file, which other processes can read, too."""
    return not filename.startswith("<") and os.path.isfile(filename)


def shown_name(filename: str) -> str:
    """Return the name in messages of code that is in no file: `In[3]` for an IPython cell."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell: Any = None if get is None else get()
    tell: Any = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found: object = None if tell is None else tell(filename)
    match found:
        case ("Cell", str(name)) if _CELLS.setdefault(name, filename) == filename:
            return name
        case _:
            return filename


def shown_text(name: str) -> str | None:
    """Return the text of code that is in no file by its name in messages; None if there is none.

    Texts in files must be read from the files.
    """
    if name == COMMAND:
        return command()
    filename = _CELLS.get(name, name)
    if filename in (typed := _prompts()):
        return typed[filename]
    if filename not in linecache.cache and not filename.startswith("<"):
        return None  # `linecache` would look for a file of that name along `sys.path`
    return "".join(linecache.getlines(filename)) or None


def _prompts() -> dict[str, str | None]:
    """Return the texts typed at Python's prompt by name; None if several share the name.

    From Python 3.14 on `linecache` stores them separately for each code object.
    """
    entries: dict[object, Any] = getattr(linecache, "_interactive_cache", {})
    texts: dict[str, str | None] = {}
    for _, _, lines, name in [*entries.values()]:
        text = "".join(lines)
        texts[name] = text if texts.get(name, text) == text else None
    return texts


def kept_names() -> Iterator[str]:
    """Yield the names of texts that are in no file, the newest first, for `shown_text`."""
    for filename in reversed([*linecache.cache, *_prompts()]):
        if filename != COMMAND and not os.path.isfile(filename):
            yield filename
    if command():
        yield COMMAND


def remedy(filename: str) -> str:
    """Return the reason why code with this name has no text, and a remedy."""
    if filename == _STDIN and hasattr(sys, "ps1"):
        return (
            "Python's prompt keeps no text before Python 3.13: "
            "define it in a file, in IPython or in a notebook"
        )
    if filename == _STDIN:
        return (
            "Python keeps no text of what it reads from standard input: put the program into a file"
        )
    if filename == COMMAND or filename.startswith("<"):
        return (
            "Python keeps no text of what `exec` or `eval` runs: "
            "define it in a file or in a cell of a notebook"
        )
    return f"{filename} cannot be read, or no longer has it: define it in a file that is there"


# Loaded modules of the same project, whose files are in the same folder.


def file_of(namespace: Mapping[str, Any]) -> str | None:
    """Return the file of a module; None if it has none.

    Python's prompt runs in the namespace of the module that implements it, with its `__file__`.
    """
    file = namespace.get("__file__")
    if not isinstance(file, str) or (namespace.get("__name__") == "__main__" and is_pythons(file)):
        return None
    return file


@lru_cache(maxsize=1 << 16)
def _real(file: str) -> str:
    """Return the real path of a loaded module; cached, as each import asks for thousands."""
    return os.path.realpath(file)


@lru_cache(maxsize=1 << 16)
def is_installed(path: str) -> bool:
    """Return whether a file belongs to an installed package, or to Python itself."""
    return not _INSTALLED.isdisjoint(path.split(os.sep)) or is_pythons(path)


_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_LIBRARY: Final = os.path.dirname(os.path.realpath(os.__file__))


@lru_cache(maxsize=1 << 16)
def is_pythons(path: str) -> bool:
    """Return whether a file belongs to the standard library."""
    inside, _, rest = _real(path).partition(os.path.join(_LIBRARY, ""))
    return not inside and bool(rest) and _INSTALLED.isdisjoint(rest.split(os.sep))


_LIBRARIES: Final = frozenset(
    "jaxlib jaxtyping ml_dtypes numpy pscdsl pyrsistent scipy typeguard typing_extensions".split()
)
"""Packages that the front end knows by name, in addition to Python's."""


def is_outside(module: str) -> bool:
    """Return whether a module is known only by its name."""
    top = module.partition(".")[0]
    return top in _LIBRARIES or (top != "__main__" and comes_with_python(top))


def comes_with_python(module: str) -> bool:
    """Return whether a module is part of Python, and not a user's file with the same name."""
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    return not isinstance(file, str) or is_pythons(file)
