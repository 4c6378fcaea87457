"""Layers of networks with their gradients: softmax cross-entropy, layer normalization, convolution."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.gradients import contenders

SHAPES = ((64, 10), (1024, 1000))
ROWS = ((64, 128), (4096, 768))
IMAGES = (((4, 1, 12, 12), (4, 1, 3, 3)), ((32, 16, 32, 32), (32, 16, 3, 3)))


def cross_entropy(np: Any, logits: Any, labels: Any) -> Any:
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    rows = np.arange(len(labels))
    return np.mean(np.log(np.sum(np.exp(shifted), axis=1)) - shifted[rows, labels])


def cross_entropy_by_torch(torch: Any, logits: Any, labels: Any) -> Any:
    return torch.nn.functional.cross_entropy(logits, labels)


def cross_entropy_by_hand(native: Any) -> Any:
    exp = native.exp

    @native.njit
    def value_and_gradient(logits, labels):
        n, value, gradient = logits.shape[0], logits.dtype.type(0), np.empty_like(logits)
        share = logits.dtype.type(1) / logits.dtype.type(n)
        for i in range(n):
            row, out = logits[i], gradient[i]
            largest, total = row.max(), logits.dtype.type(0)
            for j in range(row.size):
                out[j] = exp(row[j] - largest)
                total += out[j]
            value += np.log(total) - row[labels[i]] + largest
            scale = share / total
            for j in range(row.size):
                out[j] *= scale
            out[labels[i]] -= share
        return value * share, gradient

    return value_and_gradient


def layer_norm(np: Any, x: Any, gain: Any, bias: Any, wanted: Any) -> Any:
    centered = x - np.mean(x, axis=1, keepdims=True)
    y = gain * centered / np.sqrt(np.mean(centered**2, axis=1, keepdims=True) + 1e-5) + bias
    return np.sum(y * wanted)


def layer_norm_by_torch(torch: Any, x: Any, gain: Any, bias: Any, wanted: Any) -> Any:
    return (torch.nn.functional.layer_norm(x, gain.shape, gain, bias, 1e-5) * wanted).sum()


def layer_norm_by_hand(native: Any) -> Any:
    @native.njit
    def value_and_gradient(x, gain, bias, wanted):
        (n, d), value = x.shape, x.dtype.type(0)
        of_x, of_gain, of_bias = np.empty_like(x), np.zeros_like(gain), np.zeros_like(bias)
        each, zero, one = x.dtype.type(1) / x.dtype.type(d), x.dtype.type(0), x.dtype.type(1)
        for i in range(n):
            row, ct, out, mean, square = x[i], wanted[i], of_x[i], zero, zero
            for j in range(d):
                mean += row[j]
            mean *= each
            for j in range(d):
                square += (row[j] - mean) * (row[j] - mean)
            scale, total, dot = one / np.sqrt(square * each + x.dtype.type(1e-5)), zero, zero
            for j in range(d):
                normal, slope = (row[j] - mean) * scale, ct[j] * gain[j]
                value += (normal * gain[j] + bias[j]) * ct[j]
                of_gain[j] += normal * ct[j]
                of_bias[j] += ct[j]
                total += slope
                dot += slope * normal
            total, dot = total * each, dot * each
            for j in range(d):
                out[j] = scale * (ct[j] * gain[j] - total - (row[j] - mean) * scale * dot)
        return value, of_x, of_gain, of_bias

    return value_and_gradient


def convolution(np: Any, kernel: Any, images: Any) -> Any:
    system = np.__name__.partition(".")[0]
    if system == "numpy":
        y = import_module("fnad.nn").conv(images, kernel, (1, 1), "VALID")
    elif system == "jax":
        y = import_module("jax.lax").conv(images, kernel, (1, 1), "VALID")
    else:
        convolve = import_module("autograd.scipy.signal").convolve
        flipped = kernel[:, :, ::-1, ::-1]
        y = convolve(images, flipped, axes=((2, 3), (2, 3)), dot_axes=((1,), (1,)), mode="valid")
    return 0.5 * np.sum(y**2)


def convolution_by_torch(torch: Any, kernel: Any, images: Any) -> Any:
    return 0.5 * (torch.nn.functional.conv2d(images, kernel) ** 2).sum()


def convolution_by_hand(native: Any) -> Any:
    """The windows of an image are a matrix; three GEMMs multiply it, and what comes back is added up in the image."""
    gemm = native.gemm

    @native.njit
    def value_and_gradient(kernel, images):
        (outputs, channels, h, w), (count, _, high, wide) = kernel.shape, images.shape
        rows, columns, zero, one = high - h + 1, wide - w + 1, images.dtype.type(0), images.dtype.type(1)
        windows = np.empty((channels * h * w, rows * columns), images.dtype)
        y, flat = np.empty((outputs, rows * columns), images.dtype), kernel.reshape(outputs, channels * h * w)
        of_kernel, of_images, value = np.zeros_like(flat), np.zeros_like(images), zero
        for i in range(count):
            for k in range(windows.shape[0]):
                c, dy, dx = k // (h * w), k // w % h, k % w
                for r in range(rows):
                    for q in range(columns):
                        windows[k, r * columns + q] = images[i, c, r + dy, q + dx]
            gemm(one, flat, False, windows, False, zero, y)
            for o in range(outputs):
                for q in range(y.shape[1]):
                    value += y[o, q] * y[o, q]
            gemm(one, y, False, windows, True, one, of_kernel)
            gemm(one, flat, True, y, False, zero, windows)
            for k in range(windows.shape[0]):
                c, dy, dx = k // (h * w), k // w % h, k % w
                for r in range(rows):
                    for q in range(columns):
                        of_images[i, c, r + dy, q + dx] += windows[k, r * columns + q]
        return images.dtype.type(0.5) * value, of_kernel.reshape(kernel.shape), of_images

    return value_and_gradient


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)

    def normal(dtype: str, *shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    for dtype, tolerance in (("float64", 1e-10), ("float32", 2e-3)):
        for n, classes in SHAPES:
            arguments = normal(dtype, n, classes), rng.integers(classes, size=n)
            calls = contenders(cross_entropy, arguments, cross_entropy_by_torch, cross_entropy_by_hand)
            yield Case(f"cross-entropy, {n} x {classes}, {dtype}", calls, tolerance, rounds=11)
        for n, d in ROWS:
            arguments = normal(dtype, n, d), normal(dtype, d), normal(dtype, d), normal(dtype, n, d)
            calls = contenders(layer_norm, arguments, layer_norm_by_torch, layer_norm_by_hand, wanted=3)
            yield Case(f"layer norm, {n} x {d}, {dtype}", calls, tolerance, rounds=11)
        for images, kernel in IMAGES:
            arguments = normal(dtype, *kernel), normal(dtype, *images)
            calls = contenders(convolution, arguments, convolution_by_torch, convolution_by_hand, wanted=2)
            if images[0] > 4:  # autograd's convolution takes seconds there
                calls = [call for call in calls if call.peer != "autograd"]
            yield Case(f"convolution, {'x'.join(map(str, images))}, {dtype}", calls, tolerance, rounds=11)
