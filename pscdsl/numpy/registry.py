"""Loads every module of library functions, so that they are declared."""

from __future__ import annotations

import importlib
import pkgutil

import pscdsl.numpy
import pscdsl.random


def register_all() -> None:
    """Import every module beside this one, and those of random numbers."""
    for package in (pscdsl.numpy, pscdsl.random):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
