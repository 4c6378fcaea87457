"""Bundle adjustment: the sparse Jacobian of the errors of reprojection, 15 nonzeros a row; and that of the weights'."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

SIZES = ((49, 7776, 31843), (372, 47423, 204472))  # cameras, points, observations

Arrays = tuple[np.ndarray, ...]


def cross(np: Any, a: Any, b: Any) -> Any:
    """Return a × b: `numpy.cross` would be PyTorch's `linalg.cross`, and autograd has none."""
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def error(np: Any, camera: Any, point: Any, weight: Any, seen: Any) -> Any:
    """Return by how much one camera sees one point elsewhere."""
    p, r = point - camera[3:6], camera[:3]
    angle = np.sqrt(np.sum(r * r, axis=0))
    axis, c, s = r / angle, np.cos(angle), np.sin(angle)
    p = p * c + cross(np, axis, p) * s + axis * np.sum(axis * p, axis=0) * (1 - c)
    image = p[:2] / p[2]
    r2 = np.sum(image * image, axis=0)
    image = image * (1 + camera[9] * r2 + camera[10] * r2**2) * camera[6] + camera[7:9]
    return weight * (image - seen)


def nonzeros(np: Any, system: Any, cameras: Any, points: Any, weights: Any, *seen: Any) -> Any:
    """Return the rows of two errors each, in the order of the parameters, then the slopes of 1 - weight²."""
    each = system.vmap(system.jacrev(lambda *given: error(np, *given), (0, 1, 2)))
    of_camera, of_point, of_weight = each(cameras[seen[0]], points[seen[1]], weights, seen[2])
    rows = np.concatenate([of_camera, of_point, of_weight[:, :, None]], axis=2)
    return np.concatenate([rows.ravel(), -2 * weights])


def by_hand(native: Any) -> Any:
    """Straight code for each observation, which writes thirty numbers."""

    @native.njit
    def jacobian(cameras, points, weights, camera, point, seen):
        data = np.empty(weights.size * 31)
        for i in range(weights.size):
            observe(cameras[camera[i]], points[point[i]], weights[i], seen[i], data[30 * i : 30 * i + 30])
            data[30 * weights.size + i] = -2.0 * weights[i]
        return data

    @native.njit
    def observe(camera, point, weight, seen, out):
        r0, r1, r2 = camera[0], camera[1], camera[2]
        x0, x1, x2 = point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]
        angle = np.sqrt(r0 * r0 + r1 * r1 + r2 * r2)
        inverse, c, s = 1.0 / angle, np.cos(angle), np.sin(angle)
        a0, a1, a2 = r0 * inverse, r1 * inverse, r2 * inverse
        k0, k1, k2 = a1 * x2 - a2 * x1, a2 * x0 - a0 * x2, a0 * x1 - a1 * x0
        dot = a0 * x0 + a1 * x1 + a2 * x2
        rest = 1.0 - c
        p0, p1 = x0 * c + k0 * s + a0 * dot * rest, x1 * c + k1 * s + a1 * dot * rest
        z = 1.0 / (x2 * c + k2 * s + a2 * dot * rest)
        u, v = p0 * z, p1 * z
        square = u * u + v * v
        focus, k1st, k2nd = camera[6], camera[9], camera[10]
        bend = 1.0 + k1st * square + k2nd * square * square
        slope = 2.0 * (k1st + 2.0 * k2nd * square)
        uu, uv, vv = bend + slope * u * u, slope * u * v, bend + slope * v * v
        for row in range(2):
            of_u, of_v = (uu, uv) if row == 0 else (uv, vv)
            of_u, of_v = weight * focus * of_u, weight * focus * of_v
            g0, g1, g2 = of_u * z, of_v * z, -(of_u * u + of_v * v) * z
            along = a0 * g0 + a1 * g1 + a2 * g2
            t0, t1, t2 = g1 * a2 - g2 * a1, g2 * a0 - g0 * a2, g0 * a1 - g1 * a0
            y0 = g0 * c + t0 * s + a0 * along * rest
            y1 = g1 * c + t1 * s + a1 * along * rest
            y2 = g2 * c + t2 * s + a2 * along * rest
            h0 = s * (x1 * g2 - x2 * g1) + rest * (g0 * dot + along * x0)
            h1 = s * (x2 * g0 - x0 * g2) + rest * (g1 * dot + along * x1)
            h2 = s * (x0 * g1 - x1 * g0) + rest * (g2 * dot + along * x2)
            turn = (g0 * k0 + g1 * k1 + g2 * k2) * c - (g0 * x0 + g1 * x1 + g2 * x2) * s + along * dot * s
            radial = a0 * h0 + a1 * h1 + a2 * h2
            first = row * 15
            out[first], out[first + 1] = (
                (h0 - a0 * radial) * inverse + a0 * turn,
                (h1 - a1 * radial) * inverse + a1 * turn,
            )
            out[first + 2] = (h2 - a2 * radial) * inverse + a2 * turn
            out[first + 3], out[first + 4], out[first + 5] = -y0, -y1, -y2
            here = u if row == 0 else v
            out[first + 6] = weight * here * bend
            out[first + 7], out[first + 8] = (weight, 0.0) if row == 0 else (0.0, weight)
            out[first + 9] = weight * focus * here * square
            out[first + 10] = out[first + 9] * square
            out[first + 11], out[first + 12], out[first + 13] = y0, y1, y2
            out[first + 14] = here * bend * focus + camera[7 + row] - seen[row]

    return jacobian


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for cameras, points, n in SIZES:
        given = (1.0 + 0.1 * rng.standard_normal((cameras, 11)), 1.0 + 0.1 * rng.standard_normal((points, 3)))
        seen = rng.integers(0, cameras, n), rng.integers(0, points, n), rng.standard_normal((n, 2))
        calls = contenders((*given, 1 + 0.1 * rng.standard_normal(n)), seen)
        yield Case(f"{n:,} observations", calls, tolerance=1e-9, rounds=9)


def contenders(parameters: Arrays, seen: Arrays) -> list[Call]:
    (cameras, points, weights), (camera, point, features) = parameters, seen

    def with_fnad(fnad: Any) -> Thunk:
        data = fnad.jit(partial(nonzeros, np, fnad))
        return lambda: data(*parameters, *seen)

    def with_jax(jax: Any) -> Thunk:
        data = jax.jit(partial(nonzeros, jax.numpy, jax))
        arrays = [jax.numpy.asarray(array) for array in (*parameters, *seen)]
        return lambda: jax.block_until_ready(data(*arrays))

    def with_torch(torch: Any) -> Thunk:
        arrays = [torch.from_numpy(array) for array in (*parameters, *seen)]
        return lambda: nonzeros(torch, torch.func, *arrays)

    def with_autograd(autograd: Any) -> Thunk:
        """A row of each observation at a time: the sum over them has that row for gradient."""
        np_ = autograd.numpy

        def row(axis: int) -> Any:
            total = lambda c, x, w: np_.sum(error(np_, c, x, w, features.T)[axis])  # noqa: E731
            return autograd.grad(total, (0, 1, 2))

        def data() -> Any:
            given = cameras[camera].T, points[point].T, weights
            rows = [np.vstack(row(axis)(*given)) for axis in range(2)]
            return np.concatenate([np.stack(rows).transpose(2, 0, 1).ravel(), -2 * weights])

        return data

    def with_numba(native: Any) -> Thunk:
        jacobian = by_hand(native)
        return lambda: jacobian(*parameters, *seen)

    return [
        Call("fnad jit, vmap, jacrev", "fnad", with_fnad),
        Call("JAX jit, vmap, jacrev", "jax", with_jax),
        Call("PyTorch vmap, jacrev", "torch", with_torch),
        Call("autograd", "autograd", with_autograd),
        Call("Numba by hand", "numba", with_numba),
    ]
