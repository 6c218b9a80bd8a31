"""Where the text of loaded code is found: files, cells of notebooks, prompts, `python -c`.

Python's `linecache` knows files, and what IPython, doctest and, from Python 3.13 on, Python's own
prompt and `-c` enter there under names that are none of files.  Before, `sys.orig_argv` has the
text of `-c`.  Code that several programs share the name of, `<string>`, is compared with what the
text compiles to: `exec`, `dataclass` and `namedtuple` make code of that name, too.
"""

from __future__ import annotations

import linecache
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

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
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _inner(each)


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
    if filename not in linecache.cache and not filename.startswith("<"):
        return None  # `linecache` would look for a file of that name along `sys.path`
    return "".join(linecache.getlines(filename)) or None


def kept_names() -> Iterator[str]:
    """The names of texts that are in no file, the newest first, as `shown_text` takes them."""
    for filename in reversed([*linecache.cache]):
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
