"""Recurrent networks: a step of a cell, and whole sequences.

A step takes inputs and states with any leading axes, which are a batch. A sequence has time as its
first axis, [t *batch i], and its product with the weights of the inputs is one product for all
times. Where `present` is false a state does not change: so sequences of several lengths are one
batch, padded at the end. With `reverse`, time runs backwards; row i of a result belongs to row i of
the inputs either way.

The gates of a cell are the parts of one matrix: side by side, in the order that its docstring
gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float, Key, bool_
from pscdsl.stdlib.activations import sigmoid
from pscdsl.stdlib.initializers import orthogonal, scaled_uniform
from pscdsl.stdlib.precision import widened


class RNN(psc.Record, dims="i h"):
    """A simple recurrent network, from i inputs to a state of h numbers.

    Examples:
        >>> p = RNN(inputs=np.ones((1, 2)), state=np.zeros((2, 2)), bias=np.zeros(2))
        >>> rnn_step(p, np.zeros(2), np.array([0.5]))
        pscdsl.Array([0.4621, 0.4621], dtype=float64)
    """

    inputs: Float["i h"]
    """The matrix that inputs are multiplied by, from the right."""
    state: Float["h h"]
    """The matrix that the last state is multiplied by, from the right."""
    bias: Float["h"]
    """The bias, added to both products."""


class LSTM(psc.Record, dims="i h"):
    """Long short-term memory: the input, forget, cell and output gates, side by side.

    Examples:
        >>> p = LSTM(inputs=np.zeros((3, 16)), state=np.zeros((4, 16)), bias=np.zeros(16))
        >>> lstm_step(p, Memory(np.zeros(4), np.ones(4)), np.ones(3)).cell
        pscdsl.Array([0.5, 0.5, 0.5, 0.5], dtype=float64)
    """

    inputs: Float["i 4*h"]
    """The matrix that inputs are multiplied by, from the right."""
    state: Float["h 4*h"]
    """The matrix that the last output is multiplied by, from the right."""
    bias: Float["4*h"]
    """The bias, added to both products."""


class Memory(psc.Record, dims="*batch h"):
    """The state of an LSTM.

    Examples:
        >>> start = Memory(output=np.zeros((5, 4)), cell=np.zeros((5, 4)))
        >>> p = LSTM(np.ones((3, 16)), np.zeros((4, 16)), np.zeros(16))
        >>> lstm_step(p, start, np.ones((5, 3))).output.shape
        (5, 4)
    """

    output: Float["*batch h"]
    """The output of the cell."""
    cell: Float["*batch h"]
    """The state of the cell."""


class GRU(psc.Record, dims="i h"):
    """Gated recurrent units: the reset and update gates and the candidate, side by side.

    Examples:
        >>> p = GRU(
        ...     np.zeros((3, 12)), np.zeros((4, 12)), bias=np.zeros(12), candidate_bias=np.zeros(4)
        ... )
        >>> gru_step(p, np.ones(4), np.ones(3))
        pscdsl.Array([0.5, 0.5, 0.5, 0.5], dtype=float64)
    """

    inputs: Float["i 3*h"]
    """The matrix that inputs are multiplied by, from the right."""
    state: Float["h 3*h"]
    """The matrix that the last state is multiplied by, from the right."""
    bias: Float["3*h"]
    """The bias, added to both products."""
    candidate_bias: Float["h"]
    """The bias added to the candidate's input from the state, before the reset gate."""


def rnn_layer(key: Key, inputs: int, size: int, dtype: Any = np.float32) -> RNN["inputs size"]:
    """Parameters of a simple network: `inputs` by Glorot and Bengio, an orthogonal `state`.

    Examples:
        >>> @psc.kernel
        ... def start(key: Key) -> RNN["3 4"]:
        ...     return rnn_layer(key, inputs=3, size=4)
        >>> p = start(psc.random.key(0))
        >>> np.abs(np.round(p.state @ p.state.T, 3))
        array([[1., 0., 0., 0.],
               [0., 1., 0., 0.],
               [0., 0., 1., 0.],
               [0., 0., 0., 1.]], dtype=float32)
    """
    return RNN(*_drawn(key, inputs, size, 1, dtype))


def lstm_layer(
    key: Key, inputs: int, size: int, dtype: Any = np.float32, forget_bias: float = 1.0
) -> LSTM["inputs size"]:
    """Parameters of an LSTM, each gate like `rnn_layer`.

    The bias of the forget gate keeps memories at first (Jozefowicz, Zaremba, Sutskever 2015).

    Examples:
        >>> @psc.kernel
        ... def start(key: Key) -> LSTM["3 2"]:
        ...     return lstm_layer(key, inputs=3, size=2)
        >>> start(psc.random.key(0)).bias
        pscdsl.Array([0., 0., 1., 1., 0., 0., 0., 0.], dtype=float32)
    """
    into, state, bias = _drawn(key, inputs, size, 4, dtype)
    return LSTM(into, state, psc.update(bias, np.s_[size : 2 * size], forget_bias))


def gru_layer(key: Key, inputs: int, size: int, dtype: Any = np.float32) -> GRU["inputs size"]:
    """Parameters of gated recurrent units, each gate like `rnn_layer`.

    Examples:
        >>> @psc.kernel
        ... def start(key: Key) -> GRU["3 4"]:
        ...     return gru_layer(key, inputs=3, size=4)
        >>> psc.tree.map(np.shape, start(psc.random.key(0)))
        GRU(inputs=(3, 12), state=(4, 12), bias=(12,), candidate_bias=(4,))
    """
    into, state, bias = _drawn(key, inputs, size, 3, dtype)
    return GRU(into, state, bias, np.zeros_like(bias[:size]))


@psc.kernel
def rnn_step(p: RNN["i h"], state: Float["*batch h"], x: Float["*batch i"]) -> Float["*batch h"]:
    """The new state, `tanh(x @ p.inputs + state @ p.state + p.bias)` (Elman 1990).

    Examples:
        >>> p = RNN(inputs=np.ones((1, 1)), state=np.ones((1, 1)), bias=np.zeros(1))
        >>> rnn_step(p, np.array([0.2]), np.array([0.3]))
        pscdsl.Array([0.4621], dtype=float64)

    Cost: 2*batch*h*h + 2*batch*h*i + 12*batch*h flops.
    """
    (found,) = _rnn(p, (widened(state),), _from_inputs(p, x))
    return found.astype(x.dtype)


@psc.kernel
def lstm_step(
    p: LSTM["i h"], memory: Memory["*batch h"], x: Float["*batch i"]
) -> Memory["*batch h"]:
    """A step of an LSTM: the new memory.

    Hochreiter, Schmidhuber 1997, with the forget gate of Gers, Schmidhuber, Cummins 2000.

    Examples:
        >>> p = LSTM(inputs=np.zeros((1, 4)), state=np.zeros((1, 4)), bias=np.zeros(4))
        >>> lstm_step(p, Memory(output=np.zeros(1), cell=np.ones(1)), np.ones(1)).output
        pscdsl.Array([0.2311], dtype=float64)

    Cost: 8*batch*h*h + 8*batch*h*i + 62*batch*h flops.
    """
    wide = (widened(memory.output), widened(memory.cell))
    output, cell = _lstm(p, wide, _from_inputs(p, x))
    return Memory(output.astype(x.dtype), cell.astype(x.dtype))


@psc.kernel
def gru_step(p: GRU["i h"], state: Float["*batch h"], x: Float["*batch i"]) -> Float["*batch h"]:
    """The new state: shares of the old one and of a candidate (Cho et al. 2014).

    The reset gate acts on the candidate's input from the state after its product with the weights,
    so that a step is one product.

    Examples:
        >>> p = GRU(np.ones((1, 3)), np.zeros((1, 3)), bias=np.zeros(3), candidate_bias=np.zeros(1))
        >>> gru_step(p, np.array([0.5]), np.array([1.0]))
        pscdsl.Array([0.5704], dtype=float64)

    Cost: 6*batch*h*h + 6*batch*h*i + 42*batch*h flops.
    """
    (found,) = _gru(p, (widened(state),), _from_inputs(p, x))
    return found.astype(x.dtype)


@psc.kernel
def rnn(
    p: RNN["i h"],
    state: Float["*batch h"],
    xs: Float["t *batch i"],
    present: bool_["t *batch"] | None = None,
    reverse: psc.Static[bool] = False,
) -> tuple[Float["*batch h"], Float["t *batch h"]]:
    """`rnn_step` over a sequence that begins with `state`: the last state, and all states.

    Examples:
        >>> p = RNN(inputs=np.ones((1, 1)), state=np.ones((1, 1)), bias=np.zeros(1))
        >>> last, states = rnn(p, np.zeros(1), np.array([[0.1], [0.2], [0.3]]))
        >>> states
        pscdsl.Array([[0.0997],
                      [0.291 ],
                      [0.5306]], dtype=float64)

    Cost: at most 2*batch*h*h*t + 2*batch*h*i*t + 13*batch*h*t flops.
    """
    (last,), states = _sequence(_rnn, p, (state,), xs, present, reverse)
    return last, states


@psc.kernel
def lstm(
    p: LSTM["i h"],
    memory: Memory["*batch h"],
    xs: Float["t *batch i"],
    present: bool_["t *batch"] | None = None,
    reverse: psc.Static[bool] = False,
) -> tuple[Memory["*batch h"], Float["t *batch h"]]:
    """`lstm_step` over a sequence that begins with `memory`: the last memory, and all outputs.

    Examples:
        >>> p = LSTM(inputs=np.ones((3, 16)), state=np.zeros((4, 16)), bias=np.zeros(16))
        >>> last, outputs = lstm(p, Memory(np.zeros(4), np.zeros(4)), np.ones((10, 3)))
        >>> last.cell.shape, outputs.shape
        ((4,), (10, 4))

    Cost: at most 8*batch*h*h*t + 8*batch*h*i*t + 64*batch*h*t flops.
    """
    last, outputs = _sequence(_lstm, p, (memory.output, memory.cell), xs, present, reverse)
    return Memory(*last), outputs


@psc.kernel
def gru(
    p: GRU["i h"],
    state: Float["*batch h"],
    xs: Float["t *batch i"],
    present: bool_["t *batch"] | None = None,
    reverse: psc.Static[bool] = False,
) -> tuple[Float["*batch h"], Float["t *batch h"]]:
    """`gru_step` over a sequence that begins with `state`: the last state, and all states.

    Examples:
        >>> p = GRU(
        ...     np.ones((3, 12)), np.zeros((4, 12)), bias=np.zeros(12), candidate_bias=np.zeros(4)
        ... )
        >>> last, states = gru(p, np.zeros(4), np.ones((10, 3)))
        >>> last.shape, states.shape
        ((4,), (10, 4))

    Cost: at most 6*batch*h*h*t + 6*batch*h*i*t + 43*batch*h*t flops.
    """
    (last,), states = _sequence(_gru, p, (state,), xs, present, reverse)
    return last, states


States = tuple[Any, ...]
"""The values that a cell carries, in the dtype for sums; the first of them is its output."""


def _sequence(
    cell: Callable[[Any, States, Any], States],
    p: Any,
    start: States,
    xs: Any,
    present: Any,
    reverse: bool,
) -> tuple[States, Any]:
    """The last states and all outputs, in the dtype of the inputs."""

    def step(states: States, row: tuple[Any, Any]) -> tuple[States, Any]:
        from_inputs, here = row
        new_states = cell(p, states, from_inputs)
        if here is not None:
            pairs = zip(new_states, states, strict=True)
            here = here[..., None]
            new_states = tuple([_choice(here, new, old) for new, old in pairs])
        return new_states, new_states[0].astype(xs.dtype)

    rows = (_from_inputs(p, xs), present)
    wide = tuple(widened(state) for state in start)
    last, outputs = psc.scan(step, wide, rows, reverse=reverse)
    return tuple(state.astype(xs.dtype) for state in last), outputs


def _choice(condition: bool_["*c"], new: Float["*s"], old: Float["*s"]) -> Float["*s"]:
    return np.where(condition, new, old)


def _from_inputs(p: Any, x: Any) -> Any:
    """The gates' input from the inputs."""
    return widened(x @ p.inputs) + widened(p.bias)


def _from_state(p: Any, state: Any) -> Any:
    """The gates' input from the state."""
    return widened(state.astype(p.state.dtype) @ p.state)


def _rnn(p: Any, states: States, from_inputs: Any) -> States:
    (state,) = states
    return (np.tanh(from_inputs + _from_state(p, state)),)


def _lstm(p: Any, states: States, from_inputs: Any) -> States:
    output, cell = states
    input_gate, forget_gate, candidate, output_gate = np.split(
        from_inputs + _from_state(p, output), 4, axis=-1
    )
    cell = sigmoid(forget_gate) * cell + sigmoid(input_gate) * np.tanh(candidate)
    return sigmoid(output_gate) * np.tanh(cell), cell


def _gru(p: Any, states: States, from_inputs: Any) -> States:
    (state,) = states
    size = state.shape[-1]
    gates = _from_state(p, state)
    both = sigmoid(from_inputs[..., : 2 * size] + gates[..., : 2 * size])
    reset, update = np.split(both, 2, axis=-1)
    recalled = gates[..., 2 * size :] + widened(p.candidate_bias)
    candidate = np.tanh(from_inputs[..., 2 * size :] + reset * recalled)
    return (update * state + (1 - update) * candidate,)


def _drawn(key: Key, inputs: int, size: int, gates: int, dtype: Any) -> tuple[Any, Any, Any]:
    """Weights of the inputs and of the state, and a bias of 0, for gates side by side."""
    first, second = psc.random.split(key)
    shape = (inputs, gates * size)
    into = scaled_uniform(first, shape, 2 / (inputs + size), dtype)

    def square(key: Key) -> Any:
        return orthogonal(key, (size, size), dtype=dtype)

    squares: Any = psc.map(square, psc.random.split(second, gates))
    return into, np.moveaxis(squares, 0, 1).reshape(size, -1), np.zeros(gates * size, dtype)
