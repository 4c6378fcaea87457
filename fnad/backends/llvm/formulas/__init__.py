"""Elementary and special functions as instructions, for f64 and f32, on vectors of any width and on GPUs.

An error is at most 1.5 units in the last place, two for trigamma, zeta, i1e / x, and digamma below 0. Below 0, near
zeros of functions of the gamma family, the unit is that of 1, or of log |x| if that is larger. Values at infinities,
zeros and nan are those of C99 and SciPy.
"""
