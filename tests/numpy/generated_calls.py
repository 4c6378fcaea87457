"""Calls of NumPy's functions over the options of their signatures, drawn from tables of values by parameter.

A draw gives every parameter without a default a value, and some of the others; the same number draws the same call.
"""

from __future__ import annotations

import inspect
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

DTYPES = ("f8", "f8", "f8", "f8", "f4", "i8", "i4", "u1", "i1", "?", "c16", "c8")
SHAPES = ((3,), (4,), (2, 3), (2, 3), (3, 3), (2, 3, 2), (2, 2, 2), (), (0,), (2, 0), (1,), (1, 3))
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)


@dataclass
class Draw:
    """A source of choices, with the shape that the operands of a call have in common."""

    rng: np.random.Generator
    shape: tuple[int, ...] = ()

    def of(self, values: Any) -> Any:
        """Return one of the values; a function among them makes one."""
        value = values[self.rng.integers(len(values))]
        return value(self) if inspect.isfunction(value) else value

    def array(self, shape: Any, dtype: Any = None) -> Any:
        """Return an array of small numbers, with ties, sometimes with nan and infinities."""
        result = self.finite(shape, dtype)
        if result.dtype.kind in "fc" and self.rng.random() < 0.15:
            result = np.where(self.rng.random(shape) < 0.3, result.dtype.type(self.of(SPECIAL)), result)
        return result

    def finite(self, shape: Any, dtype: Any = None) -> Any:
        """Return an array of small numbers, with ties."""
        dtype = np.dtype(dtype or self.of(DTYPES))
        values = self.rng.integers(0 if dtype.kind in "bu" else -3, 6, shape).astype(float)
        if dtype.kind in "fc":
            values += self.of((0.0, 0.25, 0.3)) * self.rng.integers(-2, 3, shape)
        result = values.astype(dtype)
        if dtype.kind == "c":
            result = result + 1j * self.rng.integers(-2, 3, shape).astype(dtype)
        return result.astype(dtype)


def operand(d: Draw) -> Any:
    return d.array(d.shape)


def beside(d: Draw) -> Any:
    """An array that goes, or does not go, with those of the shape of the call."""
    return d.array(d.of((d.shape, d.shape, d.shape[-1:], (), (*d.shape[:-1], 1), lambda d: d.of(SHAPES))))


def mask(d: Draw) -> Any:
    return d.array(d.of((d.shape, d.shape, d.shape[-1:], ())), "?")


def integers(d: Draw) -> Any:
    """Integers that are mostly positions along an axis."""
    return d.rng.integers(-2, 3, d.of(((2,), (3,), (), d.shape)))


def along(d: Draw) -> Any:
    """As many numbers as an axis of the call has, from 1 on."""
    return d.rng.integers(1, 4, d.of(d.shape or (1,))) * d.of((1, 1.0))


def vector(d: Draw) -> Any:
    return d.array(d.of((3, 3, 2, 1, 4, 0)))


def several(d: Draw) -> Any:
    return [d.of((operand, operand, beside)) for _ in range(d.of((1, 2, 2, 3)))]


def square(d: Draw) -> Any:
    """A stack of square matrices that are not singular."""
    n, stack = d.of((1, 2, 3)), d.of(((), (), (2,)))
    matrix = d.finite((*stack, n, n), d.of(("f8", "f8", "f4", "c16", "i8")))
    return matrix if matrix.dtype.kind == "i" else (matrix + 9 * np.eye(n)).astype(matrix.dtype)


def matrices(d: Draw) -> Any:
    """A stack of matrices, or what is none."""
    return d.finite((*d.of(((), (), (2,))), *d.of(((2, 3), (3, 2), (3, 3), (3,)))))


def size(d: Draw) -> Any:
    """A shape of as many elements as the operands have, or another."""
    n = int(np.prod(d.shape))
    return d.of(((-1,), n, (n, 1), (1, n), (2, -1), (-1, 3), d.shape[::-1], (7,), (-1, -1)))


AXIS = (None, 0, 0, 1, -1, -1, 2, -4)
AXES = (*AXIS, (0, 1), (1, 0), (-1, 0), (), (0, 0), (0, 1, 2))
DTYPE = ("f8", "f4", "i8", "u1", "?", "c16", float, int, None)
BOOL = (False, True)
OPERAND = (operand,)
BESIDE = (beside,)
SMALL = (-2, -1, 0, 1, 2, 3)
NUMBER = (0, 1, -2, 2.5, np.nan, True, 1j, beside)
ORDER = ("C", "F", "A", "K")
COUNT = (0, 1, 2, 5, -1, 2.5)
QUANTILE = (0.3, 0, 1, 0.5, [0.2, 1.0], [], [[0.1], [0.5]], 1.5, np.float32(0.25))

VALUES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("a", "x", "arr", "array", "m", "ary", "v", "z", "y", "val", "element", "prototype"), OPERAND),
    **dict.fromkeys(("a1", "x1", "ar1", "object", "f", "filt", "ar", "condition", "A", "dst", "p", "w"), OPERAND),
    **dict.fromkeys(("b", "a2", "x2", "ar2", "values", "test_elements", "src", "fill_value"), BESIDE),
    "axis": AXIS,
    "axes": AXES,
    "keepdims": (True, True, False),
    "dtype": DTYPE,
    "order": ORDER,
    "where": (mask, mask, True, False),
    "initial": (0, 1, -2.5, 4, True, np.float32(2), 1j, None, -300),
    "ddof": (0, 1, 2, 1.5, 7, -1, True),
    "correction": (0, 1, 2.5, 7),
    "mean": (operand, 0.5, 1),
    "weights": (operand, along, along, beside, None),
    "casting": ("no", "equiv", "safe", "same_kind", "unsafe"),
    "mode": ("raise", "wrap", "clip", "full", "same", "valid", "reduced", "complete", "r", "raw"),
    "side": ("left", "right", "up"),
    "kind": ("quicksort", "stable", "mergesort", "heapsort", None, "up"),
    "method": (
        *("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "hazen"),
        *("closest_observation", "interpolated_inverted_cdf", "weibull", "median_unbiased", "normal_unbiased", "up"),
    ),
    "k": SMALL,
    "n": SMALL,
    "offset": SMALL,
    "axis1": (0, 1, 2, -1),
    "axis2": (1, 0, -1, -2, 2),
    "N": COUNT,
    "M": (*COUNT, None),
    "copy": (True, False, None),
    "norm": ("backward", "ortho", "forward", None, "up"),
    "s": ((2, 3), (4,), (3, 2, 2), None, (-1, 2), (0, 1)),
    "shape": (3, (2, 3), (), (0, 2), size, None),
    "new_shape": (3, (2, 3), (), (0, 2), (7,)),
    "tup": (several, several, several, operand, []),
    "arrays": (several, several, several, operand, []),
    "indices_or_sections": (1, 2, 3, [1], [1, 2], (), [2, 1], 0, -1),
    "q": QUANTILE,
    "rtol": (1e-5, 0.5, 0, along),
    "atol": (1e-8, 0.5, 0),
    "num": (0, 1, 2, 5, -1, 2.5),
    "start": (0, 1.5, operand, 2, -1, 1j),
    "stop": (7, 2.5, beside, 1, -1, 2j),
    "rcond": (None, 1e-3, 0.3, along),
    "ord": (None, 1, 2, 3, 0, -1, -2, 0.5, np.inf, -np.inf, "fro", "nuc"),
    "kth": (0, 1, -1, [0, 1], 5, 1.0),
    "decimals": (*SMALL, 400, -400, 20, 1.5),
    "indices": (integers, integers, [0, 1], 0, [[0], [1]], 1.5, []),
    "ind": (integers, [0, 1], 0, 2),
    "obj": (0, 1, -1, [0, 1], [], integers, slice(0, 1), 7, mask),
    "mask": (mask, mask, operand),
    "vals": (vector, beside, 1.5),
    "u": (lambda d: d.finite(d.of((1, 3, 4))),),
    "bins": (3, [0, 1, 2], [0, 1.5, 1.5, 4], np.array([-1.0, 0.5, 6]), [3, 1, 0], 0, "auto"),
    "range": ((0, 3), (-1.5, 2.5), (2, 1), (1, 1), None),
    "full": BOOL,
    "tol": (None, 0.1, 1, along),
    "deg": (0, 1, 2, -1, [0, 1]),
    "period": (2 * np.pi, 3, 2.5, 5, 4, 0),
    "wrap": BOOL,
    "shift": (1, -2, (1, 2), 0, 7, 1.5),
    "repeats": (0, 1, 2, [1, 0, 2], [], -1, along, [2], 1.5),
    "reps": (0, 1, 2, (2, 1), (), (1, 2, 1), 1.5),
    "pad_width": (0, 1, (1, 2), ((1, 0), (0, 2)), {-1: 2}, 5, -1, 1.5, [[1, 1]], 3),
    "source": (0, 1, -1, (0, 1), (1, 0), 5),
    "destination": (0, 1, -1, (1, 0), (-1, 0), 5),
    "sorter": (None, None, lambda d: np.arange(3)[::-1].copy()),
    "multi_index": (([0, 1], [1, 0]), lambda d: (d.array(2, "i8"), d.array(2, "i8")), [1, 2]),
    "dims": ((2, 3), (3, 3), 7, (2,)),
    "keys": (several, several, operand, []),
    "discont": (None, 1, 4.5, np.pi, 0),
    "choices": (several, several, lambda d: d.array((3, *d.shape))),
    "condlist": (lambda d: [d.array(d.shape, "?") for _ in range(2)], mask, []),
    "choicelist": (lambda d: [operand(d), beside(d)], lambda d: [operand(d)]),
    "default": NUMBER,
    "step": (1, 2, -1, 0.5),
    "start_or_stop": (3, 0, -2, 2.5),
    "dimensions": ((2, 3), (), 2, (0, 1)),
    "xp": (lambda d: np.sort(d.finite(3, "f8")), lambda d: np.zeros(0)),
    "fp": (lambda d: d.array(3), vector),
    "left": NUMBER,
    "right": NUMBER,
    "beta": (0, 2.5, 14),
    "base": (10.0, 2, 3.5),
    "xi": OPERAND,
    "indexing": ("xy", "ij", "up"),
    "ndmin": (0, 1, 3),
    "requirements": (None, "C", ["F", "W"]),
    "edge_order": (1, 2, 3),
    "dx": (1.0, 0.5, beside, 2),
    "prepend": NUMBER,
    "append": NUMBER,
    "to_end": NUMBER,
    "to_begin": NUMBER,
    "nan": (0.0, 1, np.nan, -2.5),
    "posinf": (None, 5, np.inf),
    "neginf": (None, -5, 0.5),
    "minlength": (0, 1, 9, -1, None),
    "fweights": (None, along),
    "aweights": (None, along),
    "sample": (lambda d: d.array((4, 2), "f8"),),
    "trim": ("fb", "f", "b", "B", "up"),
    "UPLO": ("L", "U", "l", "X"),
    "from_": ("i4", "f8", operand),
    "to": ("i4", "f4", "c16"),
    "axisa": (0, -1, 1),
    "axisb": (0, -1, 1),
    "axisc": (0, -1, 1),
    "min": NUMBER,
    "max": NUMBER,
    "a_min": (*NUMBER, None),
    "a_max": (*NUMBER, None),
    "bias": BOOL,
    "stable": (None, True, False),
    "sorted": (True,),  # without it NumPy leaves the order open
}
"""The values that a parameter takes; functions of a draw make some of them."""

for _name in (
    *("equal_nan", "returned", "rowvar", "density", "assume_unique", "invert", "retstep", "endpoint", "sparse"),
    *("include_initial", "increasing", "upper", "full_matrices", "compute_uv", "hermitian", "overwrite_input", "cov"),
    *("return_index", "return_inverse", "return_counts", "return_indices"),
):
    VALUES[_name] = BOOL

POSITIVE = (lambda d: (m := d.finite((3, 3), d.of(("f8", "f4", "c16")))) @ m.conj().T + 9 * np.eye(3, dtype=m.dtype),)
SEVERAL_AXES = {
    *("all", "any", "amax", "amin", "max", "min", "sum", "prod", "mean", "std", "var", "ptp", "count_nonzero"),
    *("nansum", "nanprod", "nanmean", "nanstd", "nanvar", "nanmax", "nanmin", "nanmedian", "nanquantile", "median"),
    *("nanpercentile", "percentile", "quantile", "average", "flip", "roll", "expand_dims", "squeeze", "norm", "size"),
    *("vector_norm", "gradient", "trim_zeros"),
}

FOURIER = {f"{i}{r}fft{n}" for i in ("", "i") for r in ("", "r") for n in ("2", "n")} | {"fftshift", "ifftshift"}

OF: dict[str, dict[str, tuple[Any, ...]]] = {
    **{name: {"axis": AXES} for name in SEVERAL_AXES},
    **{name: {"axes": (None, (0, 1), (1,), (-1, 0), (), (0, 5))} for name in FOURIER},
    "norm": {"axis": AXES, "x": (operand, matrices)},
    "angle": {"deg": BOOL},
    "digitize": {"right": BOOL, "bins": ([0, 1, 2], [2, 1, 0], [0, 2, 1], vector)},
    "expand_dims": {"axis": (0, 1, -1, (0, 2), (0, 0), 5)},
    "pad": {
        "mode": (
            *("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric"),
            *("wrap", "empty", "up"),
        ),
        "constant_values": (0, 1.5, (1, 2), ((1, 2), (3, 4))),
        "end_values": (0, 2.5, (1, -2), ((1, 2), (3, 4))),
        "stat_length": (None, 1, 2, (1, 2), 5, 0),
        "reflect_type": ("even", "odd", "up"),
    },
    "clip": {"dtype": DTYPE},
    "percentile": {"q": (30, 0, 100, [20, 50.5], 150)},
    "nanpercentile": {"q": (30, 0, 100, [20, 50.5], 150)},
    "bincount": {"x": (lambda d: d.rng.integers(0, 4, d.of((3, 5, 0))), vector), "weights": (None, vector)},
    "choose": {"a": (lambda d: d.rng.integers(0, 3, d.shape), operand), "mode": ("raise", "wrap", "clip")},
    "take": {"indices": (integers, integers, [0, 1], 0, [[0], [1]], []), "mode": ("raise", "wrap", "clip")},
    "put": {"v": BESIDE, "mode": ("raise", "wrap", "clip")},
    "convolve": {"a": (vector,), "v": (vector,), "mode": ("full", "same", "valid", "up")},
    "correlate": {"a": (vector,), "v": (vector,), "mode": ("full", "same", "valid", "up")},
    "einsum": {"operands": ()},
    "interp": {"x": (operand, 1.5), "period": (None, 3, -2.5, 0)},
    "poly": {"seq_of_zeros": (lambda d: d.array(d.of((0, 1, 3)), d.of(("f8", "f4", "i8"))),)},
    "polymul": {"a1": (lambda d: 1 + abs(vector(d)),), "a2": (lambda d: 1 + abs(vector(d)),)},
    **{name: {"dtype": ("f4", "f8", "c16", None)} for name in ("cov", "corrcoef")},
    **{name: {"order": ("C", "F")} for name in ("full", "ones", "zeros")},
    "polyder": {"p": (vector,), "m": SMALL},
    "polyint": {"p": (vector,), "m": SMALL, "k": (None, 1, [1, 2], 0.5)},
    "polydiv": {"v": (lambda d: d.rng.integers(1, 4, d.of((1, 2, 3))) * 1.0,)},
    "polyval": {"p": (vector,)},
    "roots": {"p": (lambda d: d.rng.integers(1, 4, d.of((1, 2, 3))) * d.of((1, 1.0)),)},
    "polyfit": {
        "rcond": (None, 1e-3),
        "x": (lambda d: np.array([0.0, 1, 2, 4]),),
        "y": (lambda d: d.finite(d.of((4, (4, 2)))),),
        "w": (lambda d: np.array([1.0, 2, 1, 3]), None),
        "full": BOOL,
        "cov": (False, True, "unscaled"),
    },
    "vander": {"x": (vector,), "N": (None, 0, 1, 4)},
    "kaiser": {"M": (0, 1, 5)},
    "rot90": {"axes": ((0, 1), (1, 0), (0, 0), (-1, 0))},
    "rollaxis": {"start": SMALL},
    "unravel_index": {"indices": (integers, 3, [0, 5]), "shape": ((2, 3), (3, 3), 7)},
    "take_along_axis": {"indices": (lambda d: d.rng.integers(0, 2, d.shape), integers)},
    "put_along_axis": {"indices": (lambda d: d.rng.integers(0, 2, d.shape),)},
    "tensordot": {"axes": (0, 1, 2, (0, 0), ([0], [1]), ([0, 1], [1, 0]), ([0, 1], [0, 1]))},
    "tensorsolve": {
        "axes": (None, (0,), (1,), (0, 1)),
        "a": (lambda d: d.finite((2, 3, 6), "f8"), square),
        "b": (lambda d: d.finite((2, 3), "f8"),),
    },
    "tensorinv": {"a": (lambda d: d.finite((2, 3, 6), "f8"), square), "ind": (1, 2, 0, -1)},
    "cond": {"x": (square,), "p": (None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc", 3)},
    "cholesky": {"a": (*POSITIVE, square)},
    "eigh": {"a": (*POSITIVE, square)},
    "eigvalsh": {"a": (*POSITIVE, square)},
    **{name: {"a": (square, matrices)} for name in ("det", "inv", "slogdet", "matrix_power", "eig", "eigvals")},
    "pinv": {"a": (square, matrices), "rcond": (None, 1e-3, 0.3), "rtol": (1e-5, 0.5, 0)},
    "qr": {"a": (square, matrices), "mode": ("reduced", "complete", "r", "raw", "up")},
    "svd": {"a": (square, matrices)},
    "svdvals": {"x": (square, matrices)},
    "matrix_rank": {"A": (square, matrices)},
    "solve": {"a": (square,), "b": (lambda d: d.finite(d.of((3, (3, 2), 2, (2, 2)))),)},
    "lstsq": {
        "rcond": (None, 1e-3, 0.3),
        "a": (square, matrices),
        "b": (lambda d: d.finite(d.of((3, (3, 2), 2, (2, 2)))),),
    },
    "matmul": {"x1": (square, matrices), "x2": (square, matrices)},
    "searchsorted": {"a": (lambda d: np.sort(d.array(3)), vector), "v": (beside, 1.5)},
    "meshgrid": {"copy": BOOL},
    "compress": {"condition": ([True, False, True], [True], [0, 2], mask)},
    "extract": {"condition": (mask, [True, False, True])},
    "where": {"condition": (mask, operand), "x": OPERAND, "y": BESIDE},
    "average": {"weights": (operand, along, along, lambda d: d.rng.integers(1, 4, d.shape[::-1]), None), "axis": AXES},
    "trapezoid": {"x": (operand, along, None), "dx": (1.0, 0.5, 2, along), "axis": (0, 0, 1, -1)},
    "unwrap": {"period": (2 * np.pi, 3, 2.5, 5, 4, 7), "p": (operand, lambda d: d.rng.integers(-20, 20, d.shape))},
    "cumulative_sum": {"axis": AXIS},
    "reshape": {"shape": (size,)},
    "broadcast_to": {"shape": ((2, 3), (4, 2, 3), (3,), 3, (2, 3, 2), lambda d: (5, *d.shape))},
    "permute_dims": {"axes": (None, (0, 1), (1, 0), (2, 0, 1), (-1, 0, 1), (0,))},
    "transpose": {"axes": (None, (0, 1), (1, 0), (2, 0, 1), (-1, 0, 1), (0,))},
    "insert": {"values": (beside, 1.5, vector)},
    "apply_along_axis": {
        "args": (),
        "func1d": (np.sum, np.cumsum, lambda d: lambda row: row * 2),
        "axis": (0, 1, -1, 5),
    },
    "apply_over_axes": {"func": (np.sum, np.max), "axes": (0, (0, 1), [1, -1])},
    "piecewise": {"args": (), "funclist": ([1, 2], [1, lambda x: x * 2, -1])},
    "array": {"object": (operand, several)},
    "asarray": {"a": (operand, several)},
    "histogram2d": {"x": (vector,), "y": (vector,)},
    "fromiter": {"iter": (vector, [1, 2]), "count": (-1, 1, 2)},
    "copyto": {"src": BESIDE, "where": (mask, True)},
    "tri": {"N": (0, 1, 3), "M": (None, 2)},
    "eye": {"N": (0, 1, 3), "M": (None, 2)},
    "identity": {"n": (0, 1, 3)},
    "trace": {"dtype": DTYPE},
    "result_type": {"arrays_and_dtypes": (operand, beside, "f4")},
    "geomspace": {"start": (1, 2.5, 1j, lambda d: abs(operand(d)) + 1), "stop": (7, 2.5, lambda d: abs(beside(d)) + 1)},
    "array_equal": {"a2": (beside, operand)},
}
"""The values that a parameter of one function takes."""

VARIADIC = {
    "arys": OPERAND,
    "args": BESIDE,
    "xi": (vector,),
    "varargs": (0.5, 2, lambda d: np.cumsum(along(d))),
    "arrays": OPERAND,
}
WITHOUT = {"out", "like", "device", "subok", "einsum_call", "ndmax", "max_work"}
"""Parameters that are not drawn: `out` has a test of its own, the others do not concern traced arrays."""


def call_of(name: str, function: Any, number: int) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call, the same for a number: by turns with few and with many options."""
    share = (0.3, 0.6)[number % 2]
    draw = Draw(np.random.default_rng([zlib.crc32(name.encode()), number]))
    draw.shape = draw.of(SHAPES)
    pools = OF.get(name.rpartition(".")[2], {})
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    parameters = inspect.signature(function).parameters.values()
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            values = pools.get(p.name, VARIADIC.get(p.name, ()))
            args += [draw.of(values) for _ in range(draw.of((0, 1, 1, 2, 3)) if values else 0)]
        elif p.kind is p.VAR_KEYWORD:
            known = {q.name for q in parameters}
            kwargs |= {k: draw.of(v) for k, v in pools.items() if k not in known and draw.rng.random() < share}
        elif p.name not in WITHOUT and (p.default is p.empty or draw.rng.random() < share):
            value = draw.of(pools.get(p.name) or VALUES[p.name])
            if (p.default is p.empty and p.kind is not p.KEYWORD_ONLY) or p.kind is p.POSITIONAL_ONLY:
                args.append(value)
            else:
                kwargs[p.name] = value
    return args, kwargs


def is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def split(args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
    """Return the arrays of a call, and the call as a function of these."""
    leaves, tree = optree.tree_flatten((args, kwargs))
    at = [i for i, leaf in enumerate(leaves) if is_array(leaf)]

    def call(function: Any, arrays: Any) -> Any:
        filled = list(leaves)
        for i, array in zip(at, arrays, strict=True):
            filled[i] = array
        args, kwargs = optree.tree_unflatten(tree, filled)
        return function(*args, **kwargs)

    return [leaves[i] for i in at], call
