"""Convolution against scipy.signal.correlate, its derivatives against the identities of a bilinear map."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.signal
from numpy.testing import assert_allclose

import fnad
from fnad import errors
from fnad.config import override
from fnad.nn import conv
from tests.together import in_groups

Pairs = tuple[tuple[int, int], ...]


def dilated(x: np.ndarray, steps: tuple[int, ...]) -> np.ndarray:
    """Return x with zeros between the elements of its last axes."""
    shape = [(n - 1) * s + 1 for n, s in zip(x.shape[2:], steps, strict=True)]
    wide = np.zeros((*x.shape[:2], *shape), x.dtype)
    wide[(..., *[slice(None, None, s) for s in steps])] = x
    return wide


def reference(
    x: np.ndarray,
    w: np.ndarray,
    strides: tuple[int, ...],
    padding: Pairs,
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    groups: int,
) -> np.ndarray:
    """Sum SciPy's correlation of each channel over the channels of a group; take every stride-th place."""
    images, kernel = dilated(x, lhs_dilation), dilated(w, rhs_dilation)
    images = np.pad(images, ((0, 0), (0, 0), *[(max(0, a), max(0, b)) for a, b in padding]))
    cut = [slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(padding, images.shape[2:], strict=True)]
    images = images[(..., *cut)]
    (outputs, channels), each = w.shape[:2], len(w) // groups
    planes = [
        [
            sum(correlation(image[o // each * channels + c], kernel[o, c]) for c in range(channels))
            for o in range(outputs)
        ]
        for image in images
    ]
    return np.array(planes)[(..., *[slice(None, None, s) for s in strides])]


def correlation(plane: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    return scipy.signal.correlate(plane, np.conj(kernel), "valid", "direct")


CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "one axis": ((2, 3, 7), (4, 3, 3), {}),
    "two axes": ((2, 3, 6, 5), (4, 3, 3, 2), {}),
    "three axes": ((2, 2, 4, 3, 5), (3, 2, 2, 2, 3), {"padding": ((1, 0), (0, 1), (1, 1))}),
    "one image, one channel": ((1, 1, 5, 5), (1, 1, 3, 3), {}),
    "a kernel of one element": ((2, 3, 4, 4), (5, 3, 1, 1), {}),
    "a kernel as large as the image": ((2, 3, 4, 4), (5, 3, 4, 4), {}),
    "strides": ((2, 3, 7, 8), (4, 3, 3, 2), {"strides": (2, 3)}),
    "padding": ((2, 3, 5, 4), (4, 3, 3, 2), {"padding": ((1, 2), (0, 3))}),
    "negative padding": ((2, 3, 7, 6), (4, 3, 3, 2), {"padding": ((-1, 2), (1, -2))}),
    "dilated images": ((2, 3, 4, 3), (4, 3, 3, 2), {"lhs_dilation": (2, 3), "padding": ((1, 1), (0, 2))}),
    "dilated kernel": ((2, 3, 7, 6), (4, 3, 3, 2), {"rhs_dilation": (2, 3)}),
    "groups": ((2, 4, 5, 5), (6, 2, 3, 2), {"groups": 2, "padding": ((1, 1), (0, 1))}),
    "each channel by itself": ((2, 4, 6), (4, 1, 3), {"groups": 4}),
    "all of it": (
        (3, 4, 6, 5),
        (2, 2, 2, 3),
        {"strides": (2, 1), "padding": ((2, 1), (3, -1)), "lhs_dilation": (1, 2), "rhs_dilation": (3, 2), "groups": 2},
    ),
}
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-13}


def geometry_of(name: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]:
    """Return the shapes of images and kernel, and the further arguments of conv."""
    images, kernel, given = CASES[name]
    ones = (1,) * (len(images) - 2)
    padding = given.get("padding", ((0, 0),) * len(ones))
    dilations = given.get("lhs_dilation", ones), given.get("rhs_dilation", ones)
    return images, kernel, (given.get("strides", ones), padding, *dilations, given.get("groups", 1))


def arrays(*shapes: tuple[int, ...], dtype: Any = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_conv_equals_the_sum_over_windows(name: str, dtype: Any) -> None:
    images, kernel, geometry = geometry_of(name)
    x, w = arrays(images, kernel, dtype=dtype)
    expected = reference(np.float64(x), np.float64(w), *geometry)
    with override(executor=random.Random(f"{name} {dtype}").choice(("interpreter", "compiled"))):
        found = fnad.jit(conv, static_argnums=(2, 3, 4, 5, 6))(x, w, *geometry)
    assert found.dtype == dtype
    assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * np.abs(expected).max())


@pytest.mark.parametrize("name", CASES)
def test_first_derivatives_of_conv_are_adjoint(name: str) -> None:
    """With y = conv(x, w): ⟨ct, conv(u, w)⟩ = ⟨x̄, u⟩ and ⟨ct, conv(x, v)⟩ = ⟨w̄, v⟩ for all u and v."""
    images, kernel, geometry = geometry_of(name)
    x, w, u, v = arrays(images, kernel, images, kernel)
    along_u, along_v = reference(u, w, *geometry), reference(x, v, *geometry)
    y, pullback = fnad.vjp(lambda x, w: conv(x, w, *geometry), x, w)
    (ct,) = arrays(y.shape)
    if random.Random(name).random() < 0.5:
        with override(executor="compiled"):
            x_bar, w_bar = fnad.jit(fnad.grad(lambda x, w: np.sum(ct * conv(x, w, *geometry)), (0, 1)))(x, w)
    else:
        x_bar, w_bar = pullback(ct)
    assert np.vdot(x_bar, u) == pytest.approx(np.vdot(ct, along_u), rel=1e-11, abs=1e-11)
    assert np.vdot(w_bar, v) == pytest.approx(np.vdot(ct, along_v), rel=1e-11, abs=1e-11)
    _, tangent = fnad.jvp(lambda x, w: conv(x, w, *geometry), (x, w), (u, v))
    assert_allclose(tangent, along_u + along_v, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_every_element_of_a_gradient(name: str) -> None:
    """By central differences, which have no error of their own for a map that is linear in each argument."""
    images, kernel, geometry = geometry_of(name)
    x, w = arrays(images, kernel)
    (ct,) = arrays(reference(x, w, *geometry).shape)
    gradients = fnad.grad(lambda x, w: np.sum(ct * conv(x, w, *geometry)), (0, 1))(x, w)
    for which, gradient in enumerate(gradients):
        for place in list(np.ndindex(gradient.shape))[:: max(1, gradient.size // 25)]:
            up, down = [[x.copy(), w.copy()] for _ in range(2)]
            up[which][place] += 1.0
            down[which][place] -= 1.0
            difference = np.sum(ct * (reference(*up, *geometry) - reference(*down, *geometry))) / 2
            assert gradient[place] == pytest.approx(difference, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_of_conv_agree_with_a_polynomial(name: str) -> None:
    """Of ⅓ Σ y³ along (u, v), where y(t) = a + bt + ct² is a polynomial: Σ 2ab² + 2a²c, by two of four nestings."""
    images, kernel, geometry = geometry_of(name)
    x, w, u, v = arrays(images, kernel, images, kernel)
    a, c = reference(x, w, *geometry), reference(u, v, *geometry)
    b = reference(u, w, *geometry) + reference(x, v, *geometry)
    expected = pytest.approx(np.sum(2 * a * b**2 + 2 * a**2 * c), rel=1e-10)

    def loss(x: Any, w: Any) -> Any:
        return np.sum(conv(x, w, *geometry) ** 3) / 3

    def slope(x: Any, w: Any) -> Any:
        return fnad.jvp(loss, (x, w), (u, v))[1]

    def slope_back(x: Any, w: Any) -> Any:
        x_bar, w_bar = fnad.grad(loss, (0, 1))(x, w)
        return np.sum(x_bar * u) + np.sum(w_bar * v)

    first, second = random.Random(name).sample((slope, slope_back), 2)
    assert fnad.jvp(first, (x, w), (u, v))[1] == expected
    x_bar, w_bar = fnad.jit(fnad.grad(second, (0, 1)))(x, w)
    assert np.sum(x_bar * u) + np.sum(w_bar * v) == expected


@pytest.mark.parametrize("name", ["two axes", "all of it"])
def test_transposes_are_convolutions(name: str) -> None:
    """The cotangent of the images is a convolution, dilated by the strides, with the kernel backwards."""
    images, kernel, geometry = geometry_of(name)
    strides, padding, lhs_dilation, rhs_dilation, groups = geometry
    x, w = arrays(images, kernel)
    y, pullback = fnad.vjp(lambda x: conv(x, w, *geometry), x)
    (ct,) = arrays(y.shape)
    backwards = np.flip(w, tuple(range(2, w.ndim)))
    parts = [np.swapaxes(part, 0, 1) for part in np.split(backwards, groups)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel[2:], rhs_dilation, strict=True)]
    before = [k - 1 - low for k, (low, _) in zip(reach, padding, strict=True)]
    spread = [(n - 1) * d + 1 for n, d in zip(images[2:], lhs_dilation, strict=True)]
    covered = [(n - 1) * s + 1 for n, s in zip(y.shape[2:], strides, strict=True)]
    after = [n + k - 1 - c - b for n, k, c, b in zip(spread, reach, covered, before, strict=True)]
    pairs = tuple(zip(before, after, strict=True))
    whole = conv(ct, np.concatenate(parts), lhs_dilation, pairs, strides, rhs_dilation, groups)
    assert_allclose(whole, pullback(ct)[0], rtol=1e-12, atol=1e-12)


# ---- padding by name -------------------------------------------------------------------------------------------------


@in_groups(("n", "k", "s", "d"), [*product((5, 6, 7), (1, 2, 3, 4), (1, 2, 3), (1, 2))])
def test_same_padding_has_a_place_for_each_stride(n: int, k: int, s: int, d: int) -> None:
    x, w = arrays((1, 2, n), (3, 2, k))
    y = conv(x, w, (s,), "SAME", rhs_dilation=(d,))
    assert y.shape == (1, 3, -(-n // s))
    total = max(0, (y.shape[2] - 1) * s + (k - 1) * d + 1 - n)
    assert_allclose(y, reference(x, w, (s,), ((total // 2, total - total // 2),), (1,), (d,), 1), atol=1e-13)


def test_valid_padding_is_none() -> None:
    x, w = arrays((2, 3, 5, 5), (4, 3, 3, 3))
    assert_allclose(conv(x, w, (1, 1), "VALID"), conv(x, w, (1, 1), [(0, 0), (0, 0)]), rtol=0)


# ---- dtypes and empty arrays -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [("f4", "f8"), ("f4", "i4"), ("i4", "i8"), ("f8", "c8"), ("c16", "c16"), ("u1", "i1"), ("i2", "?")],
)
def test_dtypes_are_promoted(left: str, right: str) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 2, (2, 3, 5, 5)).astype(left), rng.integers(0, 2, (4, 3, 2, 2)).astype(right)
    if "c" in left:
        x, w = x + 1j, w * (1 - 2j)
    ones, none = (1, 1), ((0, 0), (0, 0))
    expected = reference(x.astype(complex), w.astype(complex), ones, none, ones, ones, 1)
    for f in (conv, fnad.jit(conv, static_argnums=(2, 3))):
        found = f(x, w, ones, none)
        assert found.dtype == np.result_type(x, w)
        assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("images", "kernel"), [((0, 3, 5, 5), (4, 3, 2, 2)), ((2, 3, 5, 5), (0, 3, 2, 2))])
def test_no_images_and_no_outputs(images: Any, kernel: Any) -> None:
    x, w = arrays(images, kernel)
    for f in (conv, fnad.jit(conv, static_argnums=(2, 3))):
        assert f(x, w, (1, 1), "SAME").shape == (images[0], kernel[0], 5, 5)
    x_bar, w_bar = fnad.jit(fnad.grad(lambda x, w: np.sum(conv(x, w, (1, 1), "SAME") ** 2), (0, 1)))(x, w)
    assert_allclose(x_bar, np.zeros(images))
    assert_allclose(w_bar, np.zeros(kernel))


def test_conv_of_no_channels_is_zero() -> None:
    x, w = arrays((2, 0, 5, 5), (4, 0, 2, 2))
    for f in (conv, fnad.jit(conv, static_argnums=(2, 3))):
        assert_allclose(f(x, w, (1, 1), "VALID"), np.zeros((2, 4, 4, 4)))


# ---- what is refused -------------------------------------------------------------------------------------------------

X, W = np.ones((2, 3, 5, 5)), np.ones((4, 3, 3, 3))


@pytest.mark.parametrize(
    ("arguments", "what", "remedy"),
    [
        (
            (X[0], W, (1, 1), "SAME"),
            "conv takes images and a kernel with as many axes, three or more, got shapes (3, 5, 5) and (4, 3, 3, 3)",
            "images are batch × channels × space, a kernel is outputs × channels × windows",
        ),
        (
            (X[:, :2], W, (1, 1), "SAME"),
            "images of shape (2, 2, 5, 5) have 2 channels, a kernel of shape (4, 3, 3, 3) takes 3",
            "axis 1 of a kernel is that of images divided by feature_group_count, which divides axis 0 of a kernel too",
        ),
        (
            (X, W, (1, 1), "SAME", None, None, 3),
            "images of shape (2, 3, 5, 5) have 3 channels, a kernel of shape (4, 3, 3, 3) takes 3 in each of 3 groups",
            "axis 1 of a kernel is that of images divided by feature_group_count, which divides axis 0 of a kernel too",
        ),
        ((X, W, (1,), "SAME"), "window_strides is (1,)", "give 2 positive integers, one for each axis of space"),
        ((X, W, 1, "SAME"), "window_strides is 1", "give 2 positive integers, one for each axis of space"),
        ((X, W, (0, 1), "SAME"), "window_strides is (0, 1)", "give 2 positive integers, one for each axis of space"),
        (
            (X, W, (1, 1), "FULL"),
            "padding is 'FULL'",
            "give 'SAME', 'VALID' or a pair of integers for each axis of space",
        ),
        (
            (X, W, (1, 1), ((1, 1),)),
            "padding is ((1, 1),)",
            "give 'SAME', 'VALID' or a pair of integers for each axis of space",
        ),
        (
            (X, W, (1, 1), (1, 1)),
            "padding is (1, 1)",
            "give 'SAME', 'VALID' or a pair of integers for each axis of space",
        ),
        (
            (X, W, (1, 1), "SAME", (2, 1)),
            "padding is 'SAME' of images with zeros between their elements",
            "give it in numbers",
        ),
        (
            (X, W, (1, 1), "VALID", None, (1, 3)),
            "a window reaches over 7 elements of axis 3, which has 5, its padding included",
            "give it more padding, or a smaller window",
        ),
        (
            (X, W, (1, 1), ((-4, -4), (0, 0))),
            "a window reaches over 3 elements of axis 2, which has 0, its padding included",
            "give it more padding, or a smaller window",
        ),
    ],
)
def test_shapes_that_do_not_fit(arguments: Any, what: str, remedy: str) -> None:
    x, w, *geometry = arguments
    for f in (conv, lambda x, w, *_: fnad.jit(lambda x: conv(x, w, *geometry))(x)):
        with pytest.raises(errors.ShapeError) as caught:
            f(x, w, *geometry)
        first, where, last = str(caught.value).splitlines()
        assert (first, last.strip()) == (what, remedy)
        assert where.startswith("  at test_convolution.py:")
