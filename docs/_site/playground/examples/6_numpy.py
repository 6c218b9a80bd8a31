# Plain NumPy: see Discover
import numpy as np


def distances(points):
    difference = points[:, None] - points[None]
    return np.sqrt((difference**2).sum(-1))


def positive(x):
    return x[x > 0]


def softmax(x):
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)
