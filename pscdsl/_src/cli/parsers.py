"""The arguments of each command, declared apart from its work.

The docstring of a command's function is the description in `pscdsl COMMAND --help`. Nothing is
imported here that only the work needs.
"""

from __future__ import annotations

import argparse
import inspect
import os
from typing import Final

from pscdsl._src.checker.report import FORMATS
from pscdsl._src.targets.gpu.described import GPUS

CACHE_VARIABLE: Final = "PSCDSL_CACHE_DIR"
SHELLS: Final = ("bash", "zsh", "fish", "tcsh")

# Options that several commands have.


def _add_target(parser: argparse.ArgumentParser) -> None:
    """Declare the argument."""
    parser.add_argument(
        "target",
        metavar="FILE[:KERNEL]",
        help="the file, and the kernel in it; without a name, all of its kernels",
    )


def _add_dims(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--dims",
        action="append",
        default=[],
        metavar="SIZES",
        help="sizes by name, for instance n=8,d=4",
    )


def _add_derivatives(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group(
        "derivatives", "in place of the kernel, what a transformation makes of it"
    )
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(
        "--grad", action="store_true", help="the gradient, as psc.grad(kernel) computes it"
    )
    kind.add_argument(
        "--jvp", action="store_true", help="the result and its tangent, given those of arguments"
    )
    kind.add_argument(
        "--vjp", action="store_true", help="the result and cotangents, given that of the result"
    )
    group.add_argument(
        "--argnums",
        metavar="PLACES",
        help="with --grad: the arguments to differentiate in, for instance 0,2 (default: 0)",
    )
    group.add_argument(
        "--order",
        type=int,
        metavar="N",
        help="with --grad: 2 for the derivatives of the gradient (jacfwd of it), and so on",
    )


def _add_colour(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--colour",
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour the output; by default where it goes to a terminal",
    )


def _add_checking(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("speed")
    group.add_argument(
        "--cache-dir",
        metavar="FOLDER",
        default=os.environ.get(CACHE_VARIABLE),
        help=f"where results are kept (${CACHE_VARIABLE}, or the user's folder for caches)",
    )
    group.add_argument("--no-cache", action="store_true", help="neither use nor keep results")
    group.add_argument(
        "--jobs",
        metavar="NUMBER",
        type=_positive,
        help="how many processes; by default as many as are worth it",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


# The commands.


def _check(parser: argparse.ArgumentParser) -> None:
    """Prove kernels pure and well-shaped for every size, from their source alone.

    Without a path, what `[tool.pscdsl]` in pyproject.toml names is checked, or the current folder.
    Exit code 0: no errors (with --strict: no warnings either, and every kernel was checked);
    1: findings; 2: could not run.
    """
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="a file or a folder; `-` is standard input"
    )
    parser.add_argument(
        "--stdin-filename",
        metavar="PATH",
        help="with `-`: check the text as if it stood in this file, which need not exist",
    )
    parser.add_argument(
        "--watch", action="store_true", help="check again when a file changes, until Ctrl-C"
    )
    parser.add_argument("--format", choices=FORMATS)
    parser.add_argument(
        "--statistics",
        action="store_true",
        help="print how often each code is found; with --format json, beside the findings",
    )
    for name, text in (
        ("--select", "report only these codes or families, for instance PSC3,PSC401"),
        ("--extend-select", "report these codes or families too"),
        ("--ignore", "do not report these codes or families"),
    ):
        parser.add_argument(name, action="append", default=[], metavar="CODES", help=text)
    parser.add_argument(
        "--strict",
        action=argparse.BooleanOptionalAction,
        help="fail on warnings too, and on kernels that were not checked",
    )
    _add_checking(parser)
    parser.add_argument("--fix", action="store_true", help="make the fixes that keep the meaning")
    parser.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: make the others too"
    )
    parser.add_argument(
        "--diff",
        action="store_true",
        help="print what --fix would change and write nothing; exit code 1 if that is something",
    )
    parser.add_argument(
        "--show-types",
        action="store_true",
        help="print the type of each kernel, and those that --infer found",
    )
    parser.add_argument(
        "--show-unknown",
        action="store_true",
        help="print the calls and functions in programs of jax that are not followed, and why",
    )
    parser.add_argument(
        "--infer",
        action="store_true",
        help="look for types of the functions of jax that have no annotations with shapes",
    )
    parser.add_argument(
        "--infer-seconds",
        type=_positive,
        default=1,
        metavar="SECONDS",
        help="with --infer: the processor time for each function (default: 1)",
    )
    _add_colour(parser)
    files = parser.add_argument_group("settings and baseline")
    files.add_argument("--config", metavar="FILE", help="a TOML file with a table [tool.pscdsl]")
    files.add_argument(
        "--force-exclude", action="store_true", help="leave out excluded files even if given"
    )
    files.add_argument("--baseline", metavar="FILE", help="do not report what this file knows")
    files.add_argument("--no-baseline", action="store_const", const="", dest="baseline")
    files.add_argument(
        "--write-baseline", metavar="FILE", help="write all findings into a baseline and exit"
    )
    files.add_argument(
        "--strict-baseline",
        action=argparse.BooleanOptionalAction,
        help="fail if the baseline knows what is found no more",
    )
    files.add_argument(
        "--hide-suppressed",
        action="store_true",
        help="leave suppressed and baselined findings out of SARIF",
    )


def _discover(parser: argparse.ArgumentParser) -> None:
    """Find the functions of plain NumPy code that are PSC already, and the obstacles in others.

    A function that is PSC is shown as the definition of a kernel, to replace it; for the others the
    first obstacle is shown, with its rewrite. With `--fix`, definitions are written into the files
    if a check of the files with them succeeds. Nothing is imported or run. Exit code 0: the files
    were examined; 2: could not run.
    """
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file or a folder")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--select",
        choices=("all", "psc", "obstacles"),
        default="all",
        help="which functions to show; the last line counts all of them",
    )
    parser.add_argument(
        "--fix", action="store_true", help="write the definitions of kernels into the files"
    )
    _add_colour(parser)


def _port(parser: argparse.ArgumentParser) -> None:
    """Write the functions of a JAX file as kernels, where that is proven.

        pscdsl port model.py --output kernels.py

    Each function whose annotations give shapes, and that `pscdsl check` proves, is rewritten with
    what it needs of its file: names, types, decorators. It is written if the checker accepts the
    kernel, and if both have the same types for all sizes, and the same values for random arrays.
    The module goes to standard output, and a report to standard error. Nothing is imported or run.
    Exit code 0: all functions that are proven were ported; 1: some were not; 2: could not run.
    """
    parser.add_argument("file", metavar="FILE", help="a file that uses jax")
    parser.add_argument("--output", "-o", metavar="FILE", help="write the module to a new file")


def _explain(parser: argparse.ArgumentParser) -> None:
    """Explain a diagnostic code, with a failing example and its fix.

    Without a code, list them all.
    """
    parser.add_argument("code", nargs="?", metavar="CODE", help="for instance PSC301")
    _add_colour(parser)


def _ir(parser: argparse.ArgumentParser) -> None:
    """Print the typed program of a kernel, as the checker made it from the Python source.

        pscdsl ir model.py:loss --grad --argnums 0,2
        pscdsl ir model.py:loss --format html > loss.html

    With --grad, --jvp or --vjp, print the program of a derivative; with --simplified, print the
    program that is compiled. With --format, print a picture: a page of HTML, JSON for Google's
    Model Explorer, or DOT for Graphviz.
    """
    _add_target(parser)
    parser.add_argument(
        "--format", choices=("text", "json", "dot", "html"), default="text", help="how to print it"
    )
    parser.add_argument(
        "--simplified", action="store_true", help="without dead and repeated equations"
    )
    _add_derivatives(parser)


def _hlo(parser: argparse.ArgumentParser) -> None:
    """Print the StableHLO of a kernel for given sizes, or the HLO that XLA optimised it to."""
    _add_target(parser)
    _add_dims(parser)
    parser.add_argument("--optimized", action="store_true", help="print what XLA compiles")
    _add_gpu(parser, "for a model of GPU, in place of this machine")
    _add_mesh(parser)
    parser.add_argument(
        "--ptx", action="store_true", help="with --target: print the code of its functions"
    )
    _add_derivatives(parser)


def _add_mesh(parser: argparse.ArgumentParser) -> None:
    """Declare the option that gives the sizes of a mesh's axes."""
    parser.add_argument(
        "--mesh",
        action="append",
        default=[],
        metavar="AXIS=SIZE,...",
        help="on each device of a mesh with these axes",
    )


def _add_gpu(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the option that names a model of GPU."""
    parser.add_argument("--target", dest="gpu", choices=tuple(GPUS), help=what)


def _cost(parser: argparse.ArgumentParser) -> None:
    """Print the cost of kernels: operations and memory, as polynomials in their sizes.

        pscdsl cost model.py:loss --grad --dims n=128

    The cost is counted in the checked program: nothing is run. Sizes that --dims names become
    numbers. If the cost depends on a static value or a length, it is printed for all values that
    were tried, or for the one that --dims names; for open dtypes and ranks, the first one is taken.
    Bytes moved, and memory, are upper bounds, as XLA fuses operations; a `while_loop` without
    `max_steps` counts one step.

    With `--mesh data=8,model=2` it is the cost on each device of a mesh, where `n@data` is the
    length of a piece, and `sent[data]` counts the bytes that a device gets from others. `--machine
    h100` predicts the time of a call, and weak scaling along the first axis, by a model: devices
    compute at peak speed, and then send around a ring.
    """
    _add_target(parser)
    _add_dims(parser)
    _add_mesh(parser)
    parser.add_argument(
        "--machine",
        metavar="NAME",
        help="with --mesh: predict times on h100 or a100, or by FLOP/s, bytes a second of a link, "
        "and latency: 60e12,12e9,1e-5",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to print it"
    )
    _add_derivatives(parser)


def _compile(parser: argparse.ArgumentParser) -> None:
    """Compile kernels ahead and keep them, so that a program that calls them need not compile.

        pscdsl compile model.py --dims n=1,d=64 --dims n=32

    Sizes that are given several times are combined with all others. Kernels with a size that is not
    given are left out, and so are those with primitives that users' Python translates, which is not
    run (`psc.compile_all` compiles them in a program that runs it). For everything else that a
    signature leaves open, the first admitted choice is taken, unless --dims names one. A kernel
    with numbers for defaults is compiled twice: with these as constants, and for all other calls.

    A program finds the stored code if it runs with the same versions on the same kind of machine,
    and with the same PSCDSL_CACHE. With `--mesh data=8`, the program of the devices of a mesh is
    stored for one process that has as many CPU devices. Exit code 1: a kernel has errors; 2: could
    not run, or nothing stored.
    """
    _add_target(parser)
    _add_dims(parser)
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        help="keep them there, in place of $PSCDSL_CACHE or the user's folder for caches",
    )
    _add_gpu(
        parser,
        "compile for a model of GPU, which need not be here, and print its memory and the routines "
        "that it calls; --output FOLDER gets the optimised programs and their code",
    )
    _add_mesh(parser)
    _add_derivatives(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    """Export a kernel: one file that `psc.load` calls without its source, and jax too.

        pscdsl export model.py:predict --dims n=1,d=64 --dims n=32 --output predict.psca

    Sizes that are given several times are combined with all others; all are in the one file. For
    everything else that a signature leaves open, the first admitted choice is taken, unless --dims
    names one.

    It is signed with your key, the file that $PSCDSL_KEY names, or one among your settings:
    `psc.load` accepts it from users who have that key.
    """
    _add_target(parser)
    _add_dims(parser)
    _add_mesh(parser)
    parser.add_argument("--output", metavar="FILE", help="the file; otherwise KERNEL.psca")
    parser.add_argument(
        "--target",
        dest="device",
        choices=("any", "cpu"),
        default="any",
        help="where it is to run: on any device, or on CPUs by what is fast there",
    )
    _add_derivatives(parser)


def _run(parser: argparse.ArgumentParser) -> None:
    """Call a kernel, compiled, on files, literals or seeded random data, and print its results.

        pscdsl run model.py:predict --arg x=data.npy --arg p.b=0.5 --dims d=4

    An argument that is not given is drawn at random; sizes come from --dims and from given arrays.
    """
    _add_target(parser)
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a JSON literal or a .npy file; NAME may select a leaf, for instance p.layers[0].w",
    )
    _add_dims(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the random data")
    _add_derivatives(parser)


def _completion(parser: argparse.ArgumentParser) -> None:
    """Print a script that completes commands and options in a shell.

        eval "$(pscdsl completion bash)"

    The script is made by shtab, which `pip install shtab` installs.
    """
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" or ".join(SHELLS))


def _server(parser: argparse.ArgumentParser) -> None:
    """Serve an editor over standard input and output, by the Language Server Protocol.

    Editors start it; `docs/how-to/editors.md` says how. It needs pygls: pip install pygls
    """
    parser.add_argument("--stdio", action="store_true", help="what it does anyway")


PARSERS: Final = {
    "check": _check,
    "server": _server,
    "discover": _discover,
    "port": _port,
    "explain": _explain,
    "ir": _ir,
    "hlo": _hlo,
    "cost": _cost,
    "compile": _compile,
    "export": _export,
    "run": _run,
    "completion": _completion,
}
"""The functions that declare the arguments of each command."""


def description(name: str) -> str:
    """Return the description of a command that `--help` shows before its arguments."""
    return inspect.cleandoc(PARSERS[name].__doc__ or "")
