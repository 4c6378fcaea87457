"""The functions whose dumps are the golden files."""

import numpy as np


def sum_sin_x(x):
    return np.sum(np.sin(x) * x)
