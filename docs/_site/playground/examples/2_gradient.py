# A gradient, and what it costs
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def loss(w: f32["d"], x: f32["n d"], y: f32["n"]) -> f32:
    """The logistic loss of labels that are 0 or 1."""
    return np.mean(np.logaddexp(x @ w, 0) - y * (x @ w))


@psc.kernel
def train(w: f32["d"], x: f32["n d"], y: f32["n"], rate: f32) -> f32["d"]:
    """Weights after 100 steps of gradient descent."""
    return psc.fori_loop(0, 100, lambda i, w: w - rate * psc.grad(loss)(w, x, y), w)
