"""Waves on a string of unknown stiffness: the speed of sound along a line from what a microphone at its end heard.

u_tt = c(x)² u_xx by second differences, one end held, the other open after Mur's first-order condition, a pulse for a
source; R. J. LeVeque, "Finite difference methods for ordinary and partial differential equations", 2007, section 10,
and G. Mur, IEEE Trans. Electromagn. Compat. 23, 1981, equation (15). To fit c to a record by the gradient of the
misfit is full-waveform inversion (A. Tarantola, Geophysics 49, 1984).

The one import `fnad.numpy` takes the place of `numpy`, since the string and the record are made by `np.zeros` and
filled step by step: NumPy does not tell anybody that a traced value is written into such an array.
"""

import argparse

import scipy.optimize

import fnad
import fnad.numpy as np


def ricker(t, frequency):
    """The usual pulse of seismics, a second derivative of a Gaussian."""
    phase = (np.pi * frequency * (t - 1.0 / frequency)) ** 2
    return (1 - 2 * phase) * np.exp(-phase)


def mur(inside_now, edge_before, inside_before, courant):
    """Value at an open edge, so that a wave leaves."""
    return inside_before + (courant - 1) / (courant + 1) * (inside_now - edge_before)


def propagate(speed, dt, steps, source_at, frequency=4.0):
    """Return the string at the end, the record heard at each point of `microphones`, and the energy at each step."""
    n = len(speed)
    dx = 1.0 / (n - 1)
    courant = speed * dt / dx
    before, now = np.zeros(n), np.zeros(n)
    record = np.zeros((steps, 2))
    energy = np.zeros(steps)
    for step in range(steps):
        after = np.zeros(n)
        after[1:-1] = 2 * now[1:-1] - before[1:-1]
        after[1:-1] += courant[1:-1] ** 2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        after[source_at] += dt**2 * ricker(step * dt, frequency)
        after[0] = 0.0
        after[-1] = mur(after[-2], now[-1], now[-2], courant[-1])
        record[step, 0] = after[-1]
        record[step, 1] = after[n // 2]
        velocity, strain = (after - now) / dt, np.diff(now) / dx
        energy[step] = np.sum(velocity**2) + np.sum(speed[:-1] ** 2 * strain**2)
        before, now = now, after
    return now, record, energy


def is_stable(speed, dt):
    """Courant's condition."""
    return np.max(speed) * dt * (len(speed) - 1) <= 1.0


def taper(steps):
    """Weights that fade in and out the record, by half a cosine each."""
    weight = np.ones(steps)
    ramp = max(1, steps // 8)
    weight[:ramp] = 0.5 - 0.5 * np.cos(np.pi * np.arange(ramp) / ramp)
    weight[-ramp:] = weight[:ramp][::-1]
    return weight


def misfit(speed, record, dt, source_at):
    """Squared error against a record, in units of its strength."""
    steps = len(record)
    _, heard, _ = propagate(speed, dt, steps, source_at)
    error = taper(steps)[:, None] * (heard - record)
    return np.sum(error**2) / np.sum(record**2)


def true_speed(n):
    x = np.linspace(0.0, 1.0, n)
    return 1.0 + 0.2 * np.exp(-(((x - 0.6) / 0.1) ** 2))


def main():
    n, dt, steps, source_at = 16, 0.05, 28, 3
    speed = true_speed(n)
    assert is_stable(speed, dt)
    _, record, energy = propagate(speed, dt, steps, source_at)
    print(f"energy at its largest {energy.max():.2e}, at the end {energy[-1]:.2e}")
    arguments = (record, dt, source_at)
    guess = np.ones(n)
    for steps in (0, 3, 12):
        found = scipy.optimize.minimize(
            fnad.value_and_grad(misfit), guess, arguments, "L-BFGS-B", jac=True, options={"maxiter": steps}
        )
        error = np.sqrt(np.mean((found.x - speed) ** 2))
        print(f"step {steps:2d}  misfit {found.fun:.2e}  root mean square error of the speed {error:.4f}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
