"""Devices that exchange arrays, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any


def on_devices(count: int, barrier: Barrier, work: Callable[[int], Any]) -> list[Any]:
    """Return what each device computes; an error in one of them lets the others go, and is raised.

    The devices wait for each other at the barrier.
    """
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(device: int) -> None:
        try:
            results[device] = work(device)
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [Thread(target=run, args=(device,)) for device in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
