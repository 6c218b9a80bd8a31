"""`pscdsl ir`: typed programs, as text or as pictures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pscdsl._src.analysis.pictures import graphviz, model_explorer, page
from pscdsl._src.analysis.pictures.graph import FunctionBox, graph
from pscdsl._src.cli import say
from pscdsl._src.cli.kernel_arguments import chosen, reporting
from pscdsl._src.frontend.text.display import printable_json
from pscdsl._src.ir.program import Function
from pscdsl._src.transforms.simplify import simplify

_WRITERS: Final[dict[str, Callable[[Sequence[FunctionBox], str], str]]] = {
    "json": lambda functions, title: printable_json(model_explorer.write(functions, title)),
    "dot": graphviz.write,
    "html": page.write,
}


def run(arguments: argparse.Namespace) -> int:
    """Print the programs."""

    def programs() -> Iterator[Function]:
        for kernel in chosen(arguments):
            program = kernel.ir()
            yield simplify(program) if arguments.simplified else program

    def work() -> None:
        if arguments.format == "text":
            for program in programs():
                say(str(program).rstrip())
        else:
            say(_WRITERS[arguments.format](graph([*programs()]), arguments.target))

    return reporting(work)
