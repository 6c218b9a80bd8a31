"""Loaded code: its content, where its text is found, and which modules are of its project."""

from __future__ import annotations

import linecache
import os
import struct
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, cast

# What code is, whatever text it was compiled from and wherever that stands: its content.
#
# Two pieces of code of the same content do the same.  Python's own comparison of code takes 0.0 for
# -0.0 in places, and before Python 3.12 forgets in which columns something stands; this does not.


SIZE: Final = 32
"""Bytes of a digest."""


def content(code: types.CodeType, *, columns: bool = True) -> bytes:
    """The digest of all of a code object but the name of its file.

    Without `columns` only the lines of what it does count, not where in them it stands.
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
    """Whether two pieces of code do the same at the same places of their texts.

    Where one of them was made without columns (`python -X no_debug_ranges`), the lines decide.
    """
    if content(one) == content(other):
        return True
    if has_columns(one) and has_columns(other):
        return False
    return content(one, columns=False) == content(other, columns=False)


def has_columns(code: types.CodeType) -> bool:
    """Whether code knows in which columns of its text it stands."""
    return any([column is not None for _, _, column, _ in code.co_positions()])


def _constant(given: object, *, columns: bool) -> bytes:
    """A constant with its class: True is not 1, and 0.0 not -0.0."""
    value: Any = given
    if isinstance(given, types.CodeType):
        return b"code " + content(given, columns=columns)
    if isinstance(given, float):
        return b"float " + struct.pack("<d", given)
    if isinstance(given, complex):
        return b"complex " + struct.pack("<dd", given.real, given.imag)
    if isinstance(given, int) and not isinstance(given, bool):
        return f"int {given:x}".encode()
    if isinstance(given, bytes):
        return b"bytes " + given
    if isinstance(given, tuple | frozenset):
        members = cast("Iterable[Any]", given)
        parts = [_constant(member, columns=columns) for member in members]
        return _joined(value, sorted(parts) if isinstance(given, frozenset) else parts)
    if isinstance(given, slice):  # from Python 3.14 on
        bounds = (value.start, value.stop, value.step)
        return _joined(value, [_constant(bound, columns=columns) for bound in bounds])
    return f"{type(given).__name__} {given}".encode(errors="surrogatepass")


def _joined(value: object, parts: list[bytes]) -> bytes:
    kind = type(value).__name__.encode()
    return kind + b"".join([len(part).to_bytes(8, "little") + part for part in parts])


# Where the text of loaded code is found: files, cells of notebooks, prompts, `python -c`.
#
# Python's `linecache` knows files, and what IPython, doctest and, from Python 3.13 on, Python's own
# prompt and `-c` enter there under names that are none of files.  Before, `sys.orig_argv` has the
# text of `-c`.  Code that several programs share the name of, `<string>`, is compared with what the
# text compiles to: `exec`, `dataclass` and `namedtuple` make code of that name, too.


COMMAND: Final = "<string>"
"""What Python calls the text of `-c`, and any other text that it was given without a name."""
_STDIN: Final = "<stdin>"
_WITH_VALUES: Final = frozenset("WX")
"""Options of one letter, beside `-c` and `-m`, that the next word may belong to."""

_CELLS: dict[str, str] = {}
"""The names of cells as messages show them, and as Python knows them."""


def text_of(
    filename: str, namespace: dict[str, Any] | None = None, code: types.CodeType | None = None
) -> str | None:
    """The text that code of this file name was compiled from; None if Python keeps none.

    `code` is some of the code, without which nothing is said of names that stand for no one text.
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
    """The text that `python -c` runs in this process; None if it runs something else."""
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
    """All code in a program, as it is when it is loaded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python has said it
            return frozenset(_inner(compile(text, COMMAND, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _inner(constant)


def is_file(filename: str) -> bool:
    """Whether a name is that of a file, which other processes can read too."""
    return not filename.startswith("<") and os.path.isfile(filename)


def shown_name(filename: str) -> str:
    """The name of code that is in no file, as messages show it: `In[3]` of a cell of IPython's."""
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
    """The text of code that is in no file, by the name that messages show; None if there is none.

    What stands in files is to be read from there.
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
    """What was typed at Python's prompt, by name; None if several texts share the name.

    From Python 3.14 on `linecache` keeps these texts apart, for each code object that they made.
    """
    entries: dict[object, Any] = getattr(linecache, "_interactive_cache", {})
    texts: dict[str, str | None] = {}
    for _, _, lines, name in [*entries.values()]:
        text = "".join(lines)
        texts[name] = text if texts.get(name, text) == text else None
    return texts


def kept_names() -> Iterator[str]:
    """The names of texts that are in no file, the newest first, as `shown_text` takes them."""
    for filename in reversed([*linecache.cache, *_prompts()]):
        if filename != COMMAND and not os.path.isfile(filename):
            yield filename
    if command():
        yield COMMAND


def remedy(filename: str) -> str:
    """Why there is no text of code of this name, and what to do."""
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


# Loaded modules of the same project, whose files lie in the same folder.


def file_of(namespace: Mapping[str, Any]) -> str | None:
    """The file of a module; None if it has none.

    Python's prompt runs in the names of the module that it is written in, which it leaves a file.
    """
    file = namespace.get("__file__")
    if not isinstance(file, str) or (namespace.get("__name__") == "__main__" and is_pythons(file)):
        return None
    return file


@lru_cache(maxsize=1 << 16)
def _real(file: str) -> str:
    """Where the file of a loaded module is; asked for thousands, whenever one more is loaded."""
    return os.path.realpath(file)


@lru_cache(maxsize=1 << 16)
def is_installed(path: str) -> bool:
    """Whether a file belongs to an installed package, or to Python itself."""
    return not _INSTALLED.isdisjoint(path.split(os.sep)) or is_pythons(path)


_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_LIBRARY: Final = os.path.dirname(os.path.realpath(os.__file__))


@lru_cache(maxsize=1 << 16)
def is_pythons(path: str) -> bool:
    """Whether a file belongs to the standard library."""
    inside, _, rest = _real(path).partition(os.path.join(_LIBRARY, ""))
    return not inside and bool(rest) and _INSTALLED.isdisjoint(rest.split(os.sep))


_LIBRARIES: Final = frozenset(
    "jaxlib jaxtyping ml_dtypes numpy pscdsl pyrsistent scipy typeguard typing_extensions".split()
)
"""Packages that the front end knows by name, beside Python's own."""


def is_outside(module: str) -> bool:
    """Whether a module is known by its name alone."""
    top = module.partition(".")[0]
    return top in _LIBRARIES or (top != "__main__" and comes_with_python(top))


def comes_with_python(module: str) -> bool:
    """Whether a module is one of Python's own, and no file of the user's by the same name."""
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    return not isinstance(file, str) or is_pythons(file)
