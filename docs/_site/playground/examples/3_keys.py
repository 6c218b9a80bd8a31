# A random key that is used twice
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def noisy(key: psc.Key, x: f32["n"]) -> f32["n"]:
    noise = psc.random.normal(key, x.shape)
    keep = psc.random.uniform(key, x.shape) < 0.9
    return np.where(keep, x + noise, 0)
