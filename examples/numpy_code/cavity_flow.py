"""Flow in a square box whose lid slides: which motion of the lid drives a wanted flow?

The incompressible Navier-Stokes equations on a grid, in explicit steps, upwind in the advection; after Chorin's idea
the pressure of each step is what keeps the next velocity free of divergence, found by sweeps over its Poisson
equation. L. A. Barba and G. F. Forsyth, "CFD Python: the 12 steps to Navier-Stokes equations", J. Open Source
Education 2(16), 2019, step 11, states the scheme.

The fields are made by `np.zeros` and filled later.
"""

import argparse

import numpy as np

import fnad


def divergence_source(u, v, density, dt, dx):
    """Right-hand side of the pressure equation, from the velocity alone."""
    source = np.zeros_like(u)
    u_x = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    u_y = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dx)
    v_x = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    v_y = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dx)
    source[1:-1, 1:-1] = density * ((u_x + v_y) / dt - u_x**2 - 2 * u_y * v_x - v_y**2)
    return source


def pressure(p, source, dx, sweeps):
    """Jacobi sweeps, with dp/dn = 0 at the walls and p = 0 under the lid."""
    for _ in range(sweeps):
        old = p.copy()
        neighbours = old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1]
        p[1:-1, 1:-1] = (neighbours - dx**2 * source[1:-1, 1:-1]) / 4
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0
    return p


def advance(w, u, v, force, viscosity, dt, dx):
    """One step of the velocity component w, carried by (u, v), inside the box."""
    inside = w[1:-1, 1:-1]
    along_x = np.where(u[1:-1, 1:-1] > 0, inside - w[1:-1, :-2], w[1:-1, 2:] - inside) / dx
    along_y = np.where(v[1:-1, 1:-1] > 0, inside - w[:-2, 1:-1], w[2:, 1:-1] - inside) / dx
    laplacian = (w[1:-1, 2:] + w[1:-1, :-2] + w[2:, 1:-1] + w[:-2, 1:-1] - 4 * inside) / dx**2
    advection = u[1:-1, 1:-1] * along_x + v[1:-1, 1:-1] * along_y
    return inside + dt * (viscosity * laplacian - advection + force)


def cavity(lid, viscosity, steps, sweeps, dt=0.01, density=1.0):
    """Velocity and pressure after some steps from rest; `lid` is the lid's speed at each point of the upper wall."""
    n = len(lid)
    dx = 1.0 / (n - 1)
    u = np.zeros((n, n))
    v = np.zeros((n, n))
    p = np.zeros((n, n))
    u[-1, :] = lid
    for _ in range(steps):
        p = pressure(p, divergence_source(u, v, density, dt, dx), dx, sweeps)
        push_x = -(p[1:-1, 2:] - p[1:-1, :-2]) / (2 * dx * density)
        push_y = -(p[2:, 1:-1] - p[:-2, 1:-1]) / (2 * dx * density)
        old_u, old_v = u.copy(), v.copy()
        u[1:-1, 1:-1] = advance(old_u, old_u, old_v, push_x, viscosity, dt, dx)
        v[1:-1, 1:-1] = advance(old_v, old_u, old_v, push_y, viscosity, dt, dx)
        u[0, :], u[:, 0], u[:, -1], u[-1, :] = 0, 0, 0, lid
        v[0, :], v[-1, :], v[:, 0], v[:, -1] = 0, 0, 0, 0
    return u, v, p


def misfit(lid, viscosity, wanted, steps=4, sweeps=6):
    """Squared distance of the flow's velocity from the wanted one."""
    u, v, _ = cavity(lid, viscosity, steps, sweeps)
    return np.sum((u - wanted[0]) ** 2) + np.sum((v - wanted[1]) ** 2)


def main():
    n = 10
    true_lid = np.sin(np.pi * np.linspace(0.0, 1.0, n))
    u, v, _ = cavity(true_lid, 0.1, steps=4, sweeps=6)
    wanted = np.stack([u, v])
    step = fnad.value_and_grad(misfit)
    lid = np.full(n, 0.5)
    for i in range(16):
        loss, gradient = step(lid, 0.1, wanted)
        if i % 5 == 0:
            print(f"step {i:2d}  misfit {loss:.3e}  furthest point of the lid {np.max(np.abs(lid - true_lid)):.3f}")
        lid = lid - 0.3 * gradient


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
