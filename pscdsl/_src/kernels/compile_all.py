"""Many kernels compiled ahead of their calls, side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeAlias, cast

from pscdsl._src.checker.report.terminal import ProgressBar
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.kernels.lowered import Compiled, Lowered
from pscdsl._src.language.elements import stand_in
from pscdsl._src.support.tracebacks import public
from pscdsl.typing.python_containers import is_tuple

Job: TypeAlias = Kernel[..., Any] | tuple[Any, ...]
"""A kernel without sizes; a kernel and its sizes by name; a kernel and its arguments."""


@public
def compile_all(jobs: Iterable[Job], *, threads: int | None = None) -> list[Compiled]:
    """Compile several kernels in parallel, before they are called.

    Args:
        jobs: Each is `(kernel, {"n": 128})` with the sizes and whatever else the signature leaves
            open; or `(kernel, *arguments)` with example arguments, where `f32["128 64"]` may stand
            for an array; or a kernel without sizes.
        threads: How many programs are compiled at a time; by default the number of processors.

    Returns:
        The compiled programs, in the order of the jobs.

    Raises:
        CheckError: A kernel has errors. Nothing is compiled then.
    """
    lowered = [_lowered(each) for each in jobs]
    many = max(1, threads or os.cpu_count() or 1)
    with ProgressBar("compiling", "kernels") as bar, ThreadPoolExecutor(many) as pool:
        made = [pool.submit(each.compile) for each in lowered]
        try:
            for done, each in enumerate(as_completed(made), 1):
                each.result()
                bar.update(done, len(made))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [each.result() for each in made]


def _lowered(job: Job) -> Lowered:
    if isinstance(job, Kernel):
        return job.lower()
    if not is_tuple(job) or not job or not isinstance(job[0], Kernel):
        raise TypeError(f"not a kernel with sizes or arguments: {job!r}")
    kernel = cast("Kernel[..., Any]", job[0])
    given = job[1:]
    if len(given) == 1 and isinstance(given[0], dict):  # which is no argument
        return kernel.lower(**cast("dict[str, Any]", given[0]))
    return kernel.lower_for(*map(stand_in, given))
