"""Recurrent networks: against loops in NumPy, with padding, backwards, and their derivatives."""

# SciPy and ml_dtypes are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

import pscdsl as psc
from pscdsl import Float, Key, bool_, f64
from pscdsl._src.analysis.cost import cost
from pscdsl.stdlib import recurrent

pytestmark = pytest.mark.quick_code

RANDOM = np.random.default_rng(0)
States = tuple[NDArray[Any], ...]


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    """Each test draws the same numbers, whichever ran before it."""
    RANDOM.bit_generator.state = np.random.default_rng(0).bit_generator.state


def rnn_in_numpy(p: Any, states: States, x: NDArray[Any]) -> States:
    return (np.tanh(x @ p.inputs + states[0] @ p.state + p.bias),)


def lstm_in_numpy(p: Any, states: States, x: NDArray[Any]) -> States:
    output, cell = states
    n = output.shape[-1]

    def gate(k: int) -> NDArray[Any]:
        part = np.s_[..., k * n : (k + 1) * n]
        return np.asarray(x @ p.inputs[part] + output @ p.state[part] + p.bias[part])

    cell = expit(gate(1)) * cell + expit(gate(0)) * np.tanh(gate(2))
    return expit(gate(3)) * np.tanh(cell), cell


def gru_in_numpy(p: Any, states: States, x: NDArray[Any]) -> States:
    (state,) = states
    n = state.shape[-1]
    ours, theirs = state @ p.state, x @ p.inputs + p.bias
    reset = expit(theirs[..., :n] + ours[..., :n])
    update = expit(theirs[..., n : 2 * n] + ours[..., n : 2 * n])
    candidate = np.tanh(theirs[..., 2 * n :] + reset * (ours[..., 2 * n :] + p.candidate_bias))
    return (update * state + (1 - update) * candidate,)


def loop(
    cell: Any, p: Any, states: States, xs: NDArray[Any], present: Any = None, reverse: bool = False
) -> tuple[States, NDArray[Any]]:
    """The last states and all outputs, one time after the other."""
    outputs = np.zeros((*xs.shape[:-1], states[0].shape[-1]))
    times = range(len(xs))
    for t in reversed(times) if reverse else times:
        found = cell(p, states, xs[t])
        if present is not None:
            here = present[t][..., None]
            found = tuple(np.where(here, a, b) for a, b in zip(found, states, strict=True))
        states = found
        outputs[t] = states[0]
    return states, outputs


def numbers(*shape: int) -> NDArray[Any]:
    return RANDOM.normal(size=shape)


def parameters(record: Any, i: int, h: int, dtype: Any) -> Any:
    gates = {recurrent.RNN: 1, recurrent.LSTM: 4, recurrent.GRU: 3}[record]
    shapes = [(i, gates * h), (h, gates * h), (gates * h,), (h,)]
    fields = len(record.__dataclass_fields__)
    return record(*(numbers(*shape).astype(dtype) for shape in shapes[:fields]))


CELLS: dict[Any, tuple[Any, Any, Any]] = {
    recurrent.RNN: (recurrent.rnn_step, recurrent.rnn, rnn_in_numpy),
    recurrent.LSTM: (recurrent.lstm_step, recurrent.lstm, lstm_in_numpy),
    recurrent.GRU: (recurrent.gru_step, recurrent.gru, gru_in_numpy),
}


def begun(record: Any, batch: tuple[int, ...], h: int, dtype: Any) -> tuple[Any, States]:
    """A state as the kernels take it, and as a tuple."""
    states = tuple(numbers(*batch, h).astype(dtype) for _ in range(1 + (record is recurrent.LSTM)))
    return (recurrent.Memory(*states) if len(states) == 2 else states[0]), states


def as_tuple(state: Any) -> tuple[Any, ...]:
    return (state.output, state.cell) if isinstance(state, recurrent.Memory) else (state,)


@pytest.mark.sampled
@pytest.mark.parametrize("record", CELLS, ids=lambda record: record.__name__)
@pytest.mark.parametrize(
    ("batch", "dtype"), [((), np.float32), ((4,), np.float64)], ids=["one", "batch"]
)
def test_against_a_loop(record: Any, batch: tuple[int, ...], dtype: Any) -> None:
    step, sequence, cell = CELLS[record]
    t, i, h = 7, 3, 5
    p = parameters(record, i, h, dtype)
    state, states = begun(record, batch, h, dtype)
    xs = numbers(t, *batch, i).astype(dtype)
    rtol = 300 * float(np.finfo(dtype).eps)

    one = as_tuple(step(p, state, xs[0]))
    for found, expected in zip(one, cell(p, states, xs[0]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)

    last, outputs = sequence(p, state, xs)
    expected_last, expected_outputs = loop(cell, p, states, xs)
    np.testing.assert_allclose(outputs, expected_outputs, rtol=rtol, atol=rtol)
    for found, expected in zip(as_tuple(last), expected_last, strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("record", CELLS, ids=lambda record: record.__name__)
def test_sequences_of_several_lengths_backwards(record: Any) -> None:
    _, sequence, cell = CELLS[record]
    lengths = np.array([6, 1, 4])
    p = parameters(record, 2, 3, np.float64)
    state, states = begun(record, (3,), 3, np.float64)
    xs, present = numbers(6, 3, 2), np.arange(6)[:, None] < lengths
    last, outputs = sequence(p, state, xs, present, True)
    expected_last, expected = loop(cell, p, states, xs, present, True)
    np.testing.assert_allclose(outputs, expected, rtol=1e-10)
    for row, length in enumerate(lengths):
        alone = tuple(each[row] for each in states)
        found, _ = loop(cell, p, alone, xs[:length, row], reverse=True)
        for a, b, c in zip(as_tuple(last), expected_last, found, strict=True):
            np.testing.assert_allclose(np.asarray(a)[row], c, rtol=1e-10)
            np.testing.assert_allclose(b[row], c, rtol=1e-10)


@psc.kernel
def loss(
    p: recurrent.LSTM["i h"],
    q: recurrent.GRU["i h"],
    start: f64["b h"],
    xs: f64["t b i"],
    present: bool_["t b"],
) -> f64:
    last, outputs = recurrent.lstm(p, recurrent.Memory(start, start), xs, present)
    _, others = recurrent.gru(q, last.cell, xs, present, reverse=True)
    return (outputs * others).sum()


def test_derivatives() -> None:
    p, q = (parameters(r, 2, 2, np.float64) for r in (recurrent.LSTM, recurrent.GRU))
    present = np.arange(3)[:, None] < np.array([3, 2])
    psc.check_grads(loss, (p, q, numbers(2, 2), numbers(3, 2, 2), present), order=1, modes=("rev",))


@psc.kernel
def remember(p: recurrent.LSTM["i h"], xs: Float["t i"]) -> Float["t h"]:
    nothing = np.zeros_like(p.state[:, 0])
    return recurrent.lstm(p, recurrent.Memory(nothing, nothing), xs)[1]


def test_an_lstm_costs_what_is_said() -> None:
    flops = cost(remember.ir()).at({"t": 10, "i": 500, "h": 1000}).flops
    assert flops == pytest.approx(10 * 8 * 1000 * (500 + 1000), rel=0.01)


@psc.kernel
def draw(key: Key) -> tuple[recurrent.RNN["4 3"], recurrent.LSTM["4 3"], recurrent.GRU["4 3"]]:
    a, b, c = psc.random.split(key, 3)
    return (
        recurrent.rnn_layer(a, 4, 3),
        recurrent.lstm_layer(b, 4, 3),
        recurrent.gru_layer(c, 4, 3),
    )


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-5)


def test_drawn_parameters() -> None:
    simple, lstm, gru = draw(psc.random.key(0))
    for p in (simple, lstm, gru):
        for square in np.split(np.asarray(p.state), p.state.shape[1] // 3, axis=1):
            np.testing.assert_allclose(square @ square.T, np.eye(3), atol=1e-6)
        assert np.abs(p.inputs).max() <= np.sqrt(6 / 7)
    np.testing.assert_array_equal(lstm.bias, [0] * 3 + [1] * 3 + [0] * 6)
    a, b, c = psc.random.split(psc.random.key(0), 3)
    alone = (
        recurrent.rnn_layer(a, 4, 3),
        recurrent.lstm_layer(b, 4, 3),
        recurrent.gru_layer(c, 4, 3),
    )
    psc.tree.map(close, (simple, lstm, gru), alone)


def test_16_bits_remember_many_small_numbers() -> None:
    n, big = 600, 50.0
    p = recurrent.LSTM(
        np.array([[0, 0, 1, 0]], ml_dtypes.bfloat16),
        np.zeros((1, 4), ml_dtypes.bfloat16),
        np.array([big, big, 0, big], ml_dtypes.bfloat16),  # all gates are open
    )
    nothing = np.zeros(1, ml_dtypes.bfloat16)
    x = np.full((n, 1), 0.01, ml_dtypes.bfloat16)
    last, _ = recurrent.lstm(p, recurrent.Memory(nothing, nothing), x)
    assert float(last.cell[0]) == pytest.approx(n * float(x[0, 0]), rel=0.01)
