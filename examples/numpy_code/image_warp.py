"""Image registration: turn, stretch and shift a picture until it lies on another one.

Each pixel of the result is read where an affine map says, between four pixels of the source, with the edge repeated
beyond it; B. D. Lucas and T. Kanade, IJCAI 1981, minimise the difference over the map as here, coarse to fine over a
pyramid of half-size pictures. The four pixels are chosen by integers that depend on the map (`np.floor`, then
`astype`), their weights carry the derivative.
"""

import argparse

import numpy as np
import scipy.optimize

import fnad


def affine(parameters):
    """Matrix and shift from angle, logarithm of the scale, shear, and shift in y and x."""
    angle, log_scale, shear = parameters[0], parameters[1], parameters[2]
    c, s = np.cos(angle), np.sin(angle)
    rotation = np.stack([np.stack([c, -s]), np.stack([s, c])])
    sheared = rotation.copy()
    sheared[:, 1] += shear * rotation[:, 0]
    return np.exp(log_scale) * sheared, parameters[3:]


def bilinear(image, y, x):
    """Values of an image at places between its pixels."""
    height, width = image.shape
    y, x = np.clip(y, 0.0, height - 1.0), np.clip(x, 0.0, width - 1.0)
    top = np.minimum(np.floor(y).astype(int), height - 2)
    left = np.minimum(np.floor(x).astype(int), width - 2)
    down, right = y - top, x - left
    upper = (1 - right) * image[top, left] + right * image[top, left + 1]
    lower = (1 - right) * image[top + 1, left] + right * image[top + 1, left + 1]
    return (1 - down) * upper + down * lower


def warp(image, parameters, size=1.0):
    """Read the image at the affine map of the pixels, about its middle; `size` is that of a pixel."""
    height, width = image.shape
    rows, columns = np.mgrid[:height, :width]
    middle = np.array([(height - 1) / 2, (width - 1) / 2])
    matrix, shift = affine(parameters)
    dy, dx = rows - middle[0], columns - middle[1]
    y = matrix[0, 0] * dy + matrix[0, 1] * dx + middle[0] + shift[0] / size
    x = matrix[1, 0] * dy + matrix[1, 1] * dx + middle[1] + shift[1] / size
    return bilinear(image, y, x)


def smooth(image, times):
    """Blur by (1, 2, 1) / 4 along both axes; what lies beyond the edge is the edge."""
    for _ in range(times):
        padded = np.pad(image, 1, mode="edge")
        image = (padded[:-2, 1:-1] + 2 * padded[1:-1, 1:-1] + padded[2:, 1:-1]) / 4
        padded = np.pad(image, 1, mode="edge")
        image = (padded[1:-1, :-2] + 2 * padded[1:-1, 1:-1] + padded[1:-1, 2:]) / 4
    return image


def pyramid(image, levels):
    """The picture and its halves, the smallest first."""
    pictures = [image]
    for _ in range(levels - 1):
        blurred = smooth(pictures[0], 1)
        pictures.insert(0, 0.5 * (blurred[::2, ::2] + blurred[1::2, 1::2]))
    return pictures


def difference(parameters, image, target, size=1.0):
    """Mean squared difference of the warped image from the target, the pixels at the edge left out."""
    error = warp(smooth(image, 1), parameters, size) - smooth(target, 1)
    error[[0, -1], :] = 0
    error[:, [0, -1]] = 0
    return np.mean(error**2) + 1e-4 * parameters[2] ** 2


def example_image(n=24):
    y, x = np.mgrid[:n, :n] / n
    return np.exp(-30 * ((y - 0.4) ** 2 + (x - 0.55) ** 2)) + 0.5 * np.sin(9 * x) * np.cos(7 * y)


def main():
    image = example_image()
    true = np.array([0.12, 0.05, 0.0, 1.2, -0.8])
    target = warp(image, true)
    parameters = np.zeros(5)
    for small, goal in zip(pyramid(image, 2), pyramid(target, 2), strict=True):
        arguments = (small, goal, len(image) / len(small))
        found = scipy.optimize.minimize(fnad.value_and_grad(difference), parameters, arguments, "BFGS", jac=True)
        parameters = found.x
        print(f"{small.shape}  difference {found.fun:.2e} after {found.nit} steps  map {parameters.round(3)}")
    print(f"true map {true}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
