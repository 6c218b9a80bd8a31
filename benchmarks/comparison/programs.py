"""All programs that are compared."""

from __future__ import annotations

from benchmarks.comparison import (
    all_convolution,
    bayesian_regression,
    char_transformer,
    deployment,
    fluid,
    hmm_text,
    kalman_track,
    logistic_regression,
    mandelbrot,
    neural_ode,
    newton_cg,
    option_price,
    selu_layer,
    user_primitive,
)
from benchmarks.comparison.program import Program

PROGRAMS: tuple[Program, ...] = (
    logistic_regression.PROGRAM,
    bayesian_regression.PROGRAM,
    hmm_text.PROGRAM,
    kalman_track.PROGRAM,
    newton_cg.PROGRAM,
    all_convolution.PROGRAM,
    option_price.PROGRAM,
    char_transformer.PROGRAM,
    neural_ode.PROGRAM,
    fluid.PROGRAM,
    mandelbrot.PROGRAM,
    selu_layer.PROGRAM,
    user_primitive.PROGRAM,
    deployment.PROGRAM,
)
