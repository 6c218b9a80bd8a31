# A shape error
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def normalise(x: f32["n d"]) -> f32["n d"]:
    return x - x.mean(axis=1)
