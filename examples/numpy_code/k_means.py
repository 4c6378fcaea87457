"""Clusters by k-means: Lloyd's steps, and how far the result moves with the points it is made of.

Nearest centre, mean of its points, and again (S. P. Lloyd, IEEE Trans. Inf. Theory 28, 1982), from centres chosen as
far apart as can be (T. F. Gonzalez, Theor. Comput. Sci. 38, 1985). Which centre is nearest is a choice and has no
derivative; the means have one, and so has the objective after the steps, with respect to the points and their
weights. Sums by cluster are taken with `np.add.at`, into arrays that a traced one lends its shape to, so the import
is NumPy's.
"""

import argparse

import numpy as np

import fnad


def squared_distances(points, centres):
    """Squared distances of all points from all centres, as (points, centres)."""
    out = np.empty_like(points, shape=(len(points), len(centres)))
    for k in range(len(centres)):
        out[:, k] = np.sum((points - centres[k]) ** 2, axis=1)
    return out


def farthest_first(points, count):
    """Begin with the first point; each next centre is the point farthest from those before."""
    centres = np.empty_like(points, shape=(count, points.shape[1]))
    centres[0] = points[0]
    distance = np.sum((points - centres[0]) ** 2, axis=1)
    for k in range(1, count):
        centres[k] = points[np.argmax(distance)]
        distance = np.minimum(distance, np.sum((points - centres[k]) ** 2, axis=1))
    return centres


def lloyd(points, weights, centres, steps):
    """Return the centres after some steps; one without points stays where it is."""
    centres = centres.copy()
    for _ in range(steps):
        nearest = np.argmin(squared_distances(points, centres), axis=1)
        total = np.zeros_like(centres)
        mass = np.zeros_like(centres[:, 0])
        np.add.at(total, nearest, weights[:, None] * points)
        np.add.at(mass, nearest, weights)
        is_used = mass > 0
        mass[~is_used] = 1.0
        centres = np.where(is_used[:, None], total / mass[:, None], centres)
    return centres


def objective(points, weights, centres):
    """Weighted mean of the squared distance from the nearest centre."""
    return np.sum(weights * np.min(squared_distances(points, centres), axis=1)) / np.sum(weights)


def silhouette(points, centres):
    """How much nearer the own centre is than the next, between 0 and 1, on average over the points."""
    distance = np.sort(np.sqrt(squared_distances(points, centres)), axis=1)
    return np.mean(1 - distance[:, 0] / distance[:, 1])


def quality(points, weights, count, steps=3):
    """Objective after Lloyd's steps from the farthest points."""
    return objective(points, weights, lloyd(points, weights, farthest_first(points, count), steps))


def example_points(count=36, seed=1):
    rng = np.random.default_rng(seed)
    middle = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 4.0]])
    return middle[np.arange(count) % 3] + 0.6 * rng.standard_normal((count, 2))


def main():
    points, weights = example_points(), np.ones(36)
    centres = lloyd(points, weights, farthest_first(points, 3), 3)
    print("centres", *centres.round(3))
    value, (slope, influence) = fnad.value_and_grad(quality, (0, 1))(points, weights, 3)
    print(f"objective {value:.4f}, silhouette {silhouette(points, centres):.4f}")
    print(f"the point that weighs most on it is {points[np.argmax(influence)].round(3)}: {np.max(influence):.4f}")
    for i in range(21):
        value, slope = fnad.value_and_grad(quality)(points, weights, 3)
        if i % 10 == 0:
            print(f"step {i:2d}  objective {value:.4f}")
        points = points - 0.5 * slope


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
