"""Loads every module of this package, so that its functions are declared."""

from __future__ import annotations

import importlib
import pkgutil

import pscdsl.numpy


def register_all() -> None:
    """Import every module beside this one."""
    for module in pkgutil.iter_modules(pscdsl.numpy.__path__):
        importlib.import_module(f"pscdsl.numpy.{module.name}")
