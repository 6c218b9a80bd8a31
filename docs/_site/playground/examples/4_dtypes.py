# A dtype that is not the declared one
import pscdsl as psc
from pscdsl import f32, f64


@psc.kernel
def residual(prediction: f32["n"], target: f64["n"]) -> f32["n"]:
    return prediction - target
