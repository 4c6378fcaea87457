"""Kalman filter: the likelihood of a track that was seen through noise, and the noise that makes it likeliest.

A point moves in the plane with nearly constant velocity and is seen in its positions, some of which are lost.
Prediction, update in Joseph's form, and the likelihood from the innovations: A. C. Harvey, "Forecasting, structural
time series models and the Kalman filter", 1989, section 3.4; S. Särkkä, "Bayesian filtering and smoothing", 2013,
section 4.3 and theorem 12.1. The smoother after Rauch, Tung and Striebel runs back over what the filter stored.
"""

import argparse

import numpy as np

import fnad


def motion(dt, spread):
    """Transition matrix of (x, y, vx, vy) and the covariance of what a random acceleration adds."""
    transition = np.eye(4)
    transition[0, 2] = transition[1, 3] = dt
    unit = np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
    return transition, spread**2 * np.kron(unit, np.eye(2))


def predict(mean, covariance, transition, noise):
    return transition @ mean, transition @ covariance @ transition.T + noise


def update(mean, covariance, seen, observation, noise):
    """Return the state after a measurement, and the logarithm of the measurement's density."""
    innovation = seen - observation @ mean
    spread = observation @ covariance @ observation.T + noise
    gain = np.linalg.solve(spread, observation @ covariance).T
    rest = np.eye(len(mean)) - gain @ observation
    mean = mean + gain @ innovation
    covariance = rest @ covariance @ rest.T + gain @ noise @ gain.T
    _, logdet = np.linalg.slogdet(2 * np.pi * spread)
    density = -0.5 * (innovation @ np.linalg.solve(spread, innovation) + logdet)
    return mean, covariance, density


def filtered(log_noise, start, track, dt=0.5):
    """Return the states before and after each measurement, and the log-likelihood of the track."""
    transition, process_noise = motion(dt, np.exp(log_noise[0]))
    observation = np.eye(2, 4)
    measurement_noise = np.exp(2 * log_noise[1]) * np.eye(2)
    mean, covariance = start, np.diag([1.0, 1.0, 4.0, 4.0])
    likelihood, before, after = 0.0, [], []
    for seen, is_lost in track:
        mean, covariance = predict(mean, covariance, transition, process_noise)
        before.append((mean, covariance))
        if not is_lost:
            mean, covariance, density = update(mean, covariance, seen, observation, measurement_noise)
            likelihood += density
        after.append((mean, covariance))
    return before, after, likelihood


def smoothed(log_noise, start, track, dt=0.5):
    """Return the means given all measurements, one row for each time."""
    before, after, _ = filtered(log_noise, start, track, dt)
    transition, _ = motion(dt, 1.0)
    means = [after[-1][0]]
    for (mean, covariance), (expected, predicted) in zip(after[-2::-1], before[:0:-1], strict=True):
        gain = np.linalg.solve(predicted, transition @ covariance).T
        means.append(mean + gain @ (means[-1] - expected))
    return np.stack(means[::-1])


def surprise(log_noise, start, track):
    """Minus the log-likelihood: of the noises (acceleration, measurement) and the state at the start."""
    return -filtered(log_noise, start, track)[2]


def example_track(length=12, seed=0):
    """A track of its own making: a turn, with noise of 0.3, every fifth position lost."""
    rng = np.random.default_rng(seed)
    angle = np.linspace(0.0, 2.0, length)
    places = 4 * np.stack([np.sin(angle), 1 - np.cos(angle)], axis=1) + 0.3 * rng.standard_normal((length, 2))
    return [(place, i % 5 == 4) for i, place in enumerate(places)]


def main():
    track, start, log_noise = example_track(), np.array([0.0, 0.0, 2.0, 0.0]), np.zeros(2)
    step = fnad.value_and_grad(lambda log_noise: surprise(log_noise, start, track))
    for i in range(31):
        value, gradient = step(log_noise)
        if i % 10 == 0:
            print(f"step {i:2d}  -log L {value:.4f}  noise of acceleration and of sight {np.exp(log_noise).round(3)}")
        log_noise = log_noise - 0.03 * gradient
    places = smoothed(log_noise, start, track)[:, :2]
    distance = np.linalg.norm(places - np.stack([seen for seen, _ in track]), axis=1)
    print(f"smoothed places are {np.mean(distance):.2f} from those seen on average, {np.max(distance):.2f} at most")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
