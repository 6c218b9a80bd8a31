# Loops and stores
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def smooth(x: f32["n"], rate: f32) -> f32["n"]:
    """Exponential smoothing, with stores in a loop."""
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = rate * x[i] + (1 - rate) * y[i - 1]
    return y


@psc.kernel
def doubled(x: f32["n"]) -> f32["n"]:
    """A store into an argument, which `writes=` does not list."""
    x[:] = 2 * x
    return x
