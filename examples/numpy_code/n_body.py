"""Bodies under gravity, softened, moved by the leapfrog scheme: how to throw a probe so that it arrives.

Kick, drift, kick with forces from pairs of bodies and Plummer's softening; J. Barnes and P. Hut's lecture codes and
W. Dehnen and J. I. Read, "N-body simulations of gravitational dynamics", Eur. Phys. J. Plus 126:55, 2011, equations
(1) and (20), state both. The loops and the writes into `acceleration` are plain NumPy, and so is the import.
"""

import argparse

import numpy as np

import fnad

GRAVITY = 1.0


def accelerations(position, mass, softening):
    """Return what each body feels of all others, going over the pairs once."""
    acceleration = np.zeros_like(position)
    for i in range(len(position)):
        for j in range(i + 1, len(position)):
            offset = position[j] - position[i]
            strength = GRAVITY / (np.dot(offset, offset) + softening**2) ** 1.5
            acceleration[i] += mass[j] * strength * offset
            acceleration[j] -= mass[i] * strength * offset
    return acceleration


def leapfrog(position, velocity, mass, softening, dt, steps):
    """Return the paths, as (steps + 1, bodies, 2), and the velocities at the end."""
    position, velocity = position.copy(), velocity.copy()
    acceleration = accelerations(position, mass, softening)
    path = [position.copy()]
    for _ in range(steps):
        velocity += 0.5 * dt * acceleration
        position += dt * velocity
        acceleration = accelerations(position, mass, softening)
        velocity += 0.5 * dt * acceleration
        path.append(position.copy())
    return np.stack(path), velocity


def energy(position, velocity, mass, softening):
    """Kinetic and potential energy together, which the scheme nearly keeps."""
    total = 0.5 * np.sum(mass * np.sum(velocity**2, axis=1))
    for i in range(len(position)):
        for j in range(i):
            offset = position[i] - position[j]
            total -= GRAVITY * mass[i] * mass[j] / np.sqrt(np.sum(offset**2) + softening**2)
    return total


def launch(throw, position, velocity, mass, softening=0.1, dt=0.05, steps=12):
    """Return the path of the last body, thrown with a velocity of its own, and the drift of the energy."""
    velocity = velocity.copy()
    velocity[-1] = throw
    before = energy(position, velocity, mass, softening)
    path, at_end = leapfrog(position, velocity, mass, softening, dt, steps)
    return path[:, -1], energy(path[-1], at_end, mass, softening) - before


def miss(throw, position, velocity, mass, target):
    """Squared distance from the target at the end of the flight, with a price on the length of the way."""
    path, _ = launch(throw, position, velocity, mass)
    way = np.sum((path[1:] - path[:-1]) ** 2)
    return np.sum((path[-1] - target) ** 2) + 1e-3 * way


def system():
    """A star with a planet on a circle around it, and a probe near the planet."""
    position = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.3]])
    velocity = np.array([[0.0, -0.1], [0.0, 1.0], [0.0, 0.0]])
    mass = np.array([1.0, 0.1, 1e-6])
    return position, velocity, mass


def main():
    position, velocity, mass = system()
    throw, target = np.array([0.5, 0.5]), np.array([0.2, 1.2])
    step = fnad.value_and_grad(miss)
    for i in range(11):
        distance, gradient = step(throw, position, velocity, mass, target)
        if i % 5 == 0:
            print(f"throw {i:2d}  {throw.round(4)}  misses by {np.sqrt(distance):.4f}")
        throw = throw - 0.8 * gradient
    print(f"energy changed by {launch(throw, position, velocity, mass)[1]:.1e}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
