"""Loads every module of library functions, so that they are declared."""

from __future__ import annotations

import importlib
import pkgutil

import pscdsl.numpy
import pscdsl.random
import pscdsl.special


def register_all() -> None:
    """Import every module beside this one, those of random numbers, and special functions."""
    for package in (pscdsl.numpy, pscdsl.random, pscdsl.special):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
