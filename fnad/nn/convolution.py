"""Convolution, as networks have it: a contraction of sliding windows with a kernel.

    y[b, o, p] = Σ x[b, c, p · stride + k · dilation] w[o, c, k]     over channels c and positions k in the window

In compiled code the windows of one image after the other are copied into a matrix, which BLAS multiplies by the kernel.
The derivatives are those of the contraction and of `windows`: a matrix product with the windows for the kernel, a
matrix product and `overlap_add` for the image. The alternative, transposes that are convolutions themselves, was
measured: it takes 1.2 to 9 times as long, more with more outputs per channel, since the windows of the cotangent,
padded on all sides, are larger than those of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import fnad.numpy as fnp
from fnad.nn.applied import dot_general, pad, windows
from fnad.nn.geometry import Ints, Padding, Pairs, check_windows, fault, padding_of, per_axis
from fnad.trace.unknown import explained


@explained
def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    feature_group_count: int = 1,
) -> Any:
    """The correlation of images with a kernel, as `jax.lax.conv_general_dilated` with its default layout.

    lhs is batch × channels × space, rhs is outputs × channels × windows, with one or more spatial axes; the result is
    batch × outputs × positions, in the common dtype. `padding` is "SAME", "VALID" or a pair (before, after) for each
    axis, negative to leave elements out. `lhs_dilation` puts zeros between the elements of the images, `rhs_dilation`
    between those of the kernel. With `feature_group_count` = g the channels and the outputs are divided into g parts,
    one convolution each, and rhs has channels / g. Raises `ShapeError` for shapes that do not fit.

    Dumoulin, Visin, "A guide to convolution arithmetic for deep learning" (2016), relationships 1 to 14; the layout as
    a matrix product is that of Chellapilla, Puri, Simard, "High performance convolutional neural networks for document
    processing" (2006), section 3.

    >>> import fnad
    >>> x, w = np.arange(9.0).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2))
    >>> conv(x, w, (1, 1), "VALID")
    array([[[[ 8., 12.],
             [20., 24.]]]])
    >>> fnad.grad(lambda w: conv(x, w, (1, 1), "VALID").sum())(w)
    array([[[[ 8., 12.],
             [20., 24.]]]])
    """
    x, kernel = fnp.asarray(lhs), fnp.asarray(rhs)
    groups, dtype = feature_group_count, np.result_type(x, kernel)
    _check_shapes(x.shape, kernel.shape, groups)
    batch, _, *extents = x.shape
    outputs, channels, *sizes = kernel.shape
    strides = per_axis("window_strides", window_strides, len(sizes))
    between = per_axis("lhs_dilation", lhs_dilation, len(sizes))
    dilations = per_axis("rhs_dilation", rhs_dilation, len(sizes))
    if isinstance(padding, str) and max(between) > 1:
        raise fault(f"padding is {padding!r} of images with zeros between their elements", "give it in numbers")
    reach = tuple((k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True))
    x = _spread(x.astype(dtype), padding_of(padding, tuple(extents), reach, strides), between)
    check_windows(x.shape[2:], tuple(sizes), strides, dilations)
    parts = () if groups == 1 else (groups,)
    images = np.reshape(x, (batch, *parts, channels, *x.shape[2:]))
    each = np.reshape(kernel.astype(dtype), (*parts, outputs // groups, channels, *sizes))
    product = _contracted(images, np.broadcast_to(each, (batch, *each.shape)), strides, dilations)
    return np.reshape(product, (batch, outputs, *product.shape[-len(sizes) :]))


def _contracted(images: Any, kernels: Any, strides: Ints, dilations: Ints) -> Any:
    """Contract windows with kernels: both begin with the same batch axes, perhaps groups, then channels."""
    n, lead = len(strides), images.ndim - len(strides) - 1
    axes, sizes = tuple(range(lead + 1, lead + 1 + n)), kernels.shape[-n:]
    patches = windows(images, axes=axes, sizes=sizes, strides=strides, dilations=dilations)
    contract = tuple(range(lead + 1, lead + 2 + n)), (lead, *range(images.ndim, images.ndim + n))
    return dot_general(kernels, patches, contract=contract, batch=(tuple(range(lead)),) * 2)


def _spread(x: Any, padding: Pairs, between: Ints) -> Any:
    """Insert zeros between elements along the spatial axes, then pad; negative padding drops elements."""
    if max(between) > 1 or any(low > 0 or high > 0 for low, high in padding):
        low, high = ((0, 0, *[max(0, pair[i]) for pair in padding]) for i in (0, 1))
        x = pad(x, low=low, high=high, interior=(0, 0, *[b - 1 for b in between]))
    if any(low < 0 or high < 0 for low, high in padding):
        spans = zip(padding, x.shape[2:], strict=True)
        x = x[(..., *[slice(max(0, -low), max(0, n - max(0, -high))) for (low, high), n in spans])]
    return x


def _check_shapes(images: Ints, kernel: Ints, groups: Any) -> None:
    if len(images) < 3 or len(images) != len(kernel):
        raise fault(
            f"conv takes images and a kernel with as many axes, three or more, got shapes {images} and {kernel}",
            "images are batch × channels × space, a kernel is outputs × channels × windows",
        )
    if groups < 1 or kernel[0] % groups or images[1] % groups or images[1] // groups != kernel[1]:
        raise fault(
            f"images of shape {images} have {images[1]} channels, a kernel of shape {kernel} takes {kernel[1]}"
            + (f" in each of {groups} groups" if groups != 1 else ""),
            "axis 1 of a kernel is that of images divided by feature_group_count, which divides axis 0 of a kernel too",
        )
