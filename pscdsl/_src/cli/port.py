"""`pscdsl port`: writes the functions of a JAX file as kernels."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pscdsl._src.cli import Unusable, say
from pscdsl._src.cli.check import write_text
from pscdsl._src.discover.port import Ported, by_cause, port
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.frontend.text.display import shown_path
from pscdsl._src.support.paths import admitted
from pscdsl.typing.diagnostics import Failure


def run(arguments: argparse.Namespace) -> int:
    """Port the functions of a file and report."""
    given = str(Path(arguments.file))
    if not os.path.isfile(given):
        raise Unusable(f"no such file: {given}")
    output: str | None = arguments.output
    if output is not None and os.path.exists(output):
        raise Unusable(f"{output} exists: `port` writes a new file")
    files = files_below([admitted(given, [os.getcwd()])])
    (path,) = files.given
    try:
        ported = port(files, path)
    except Failure as failure:
        raise Unusable(failure.diagnostics[0].message()) from None
    if ported.text and output is None:
        write_text(ported.text.encode())
    elif ported.text and output is not None:
        Path(output).write_bytes(ported.text.encode())
    _report(shown_path(path), ported)
    return int(any(each.is_proven for each in ported.refused))


def _report(path: str, ported: Ported) -> None:
    """Print what was not ported, and what means something else, to standard error."""
    for each in ported.refused:
        status = "is not ported" if each.is_proven else "is not proven"
        say(f"{path}:{each.line}: `{each.name}` {status}: {each.why}", error=True)
    for done in ported.written:
        for note in done.notes:
            say(f"{path}:{done.line}: `{done.name}` differs: {note}", error=True)
    count = len(ported.written)
    proven = count + sum(each.is_proven for each in ported.refused)
    functions = "1 function" if proven == 1 else f"{proven} functions"
    say(f"pscdsl: {count} of {functions} that are proven ported", error=True)
    causes = by_cause([each for each in ported.refused if each.is_proven])
    repeated = [f"{cause} ({number})" for cause, number in causes.most_common() if number > 1]
    if repeated:
        say(f"not ported: {', '.join(repeated)}", error=True)
