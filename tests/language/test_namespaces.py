"""`psc.numpy` is NumPy: in kernels by its meanings, outside of them by itself."""

from __future__ import annotations

import pkgutil

import numpy as np

import pscdsl as psc
import pscdsl.numpy
from pscdsl import f32
from pscdsl._src.frontend.modules.known import register_all


@psc.kernel
def shifted(x: f32["n"]) -> f32["n"]:
    return psc.numpy.exp(x) - psc.numpy.max(x)


def test_the_explicit_namespace_means_the_same() -> None:
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(np.asarray(shifted(x)), np.exp(x) - np.max(x), rtol=1e-6)
    assert psc.numpy.exp is np.exp


def test_no_module_of_ours_hides_a_name_of_numpy() -> None:
    register_all()
    ours = [each.name for each in pkgutil.iter_modules(pscdsl.numpy.__path__)]
    assert not [name for name in ours if hasattr(np, name)]


def test_functions_have_the_parameters_that_they_declare() -> None:
    from pscdsl._src.language.meanings import MEANINGS, Meaning

    meanings = [each for each in MEANINGS.values() if isinstance(each, Meaning)]
    assert len(meanings) > 300
    for each in meanings:
        assert {*each.together, *each.alone} <= each.signature.parameters.keys(), each
