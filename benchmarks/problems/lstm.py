"""Next-character prediction by an LSTM with elementwise weights: the loss over a text, and its gradient."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.gradients import contenders, scan

SIZES = ((2, 1024), (4, 4096))  # layers, characters
WIDTH = 14  # bits of a character


def sigmoid(np: Any, x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def loss(np: Any, weights: Any, ends: Any, start: Any, text: Any) -> Any:
    """Return minus the mean log-likelihood; `weights` is layers x (weight, bias) x gates x bits, `start` the state."""

    def step(state: Any, characters: Any) -> Any:
        x, wanted = characters[0] * ends[0], characters[1]
        rows = []
        for (w, b), (h, c) in ((weights[i], state[i]) for i in range(len(weights))):
            forget, enter = sigmoid(np, x * w[0] + b[0]), sigmoid(np, h * w[1] + b[1])
            leave, change = sigmoid(np, x * w[2] + b[2]), np.tanh(h * w[3] + b[3])
            cell = c * forget + enter * change
            x = leave * np.tanh(cell)
            rows.append(np.stack([x, cell]))
        y = x * ends[1] + ends[2]
        return np.stack(rows), np.sum(wanted * (y - np.log(np.sum(np.exp(y)) + 2)))

    likelihoods = scan(np, step, start, (text[:-1], text[1:]))[1]
    return -np.mean(likelihoods) / WIDTH


def by_hand(native: Any) -> Any:
    """What a step computes is kept; the loop back reads it."""
    exp, tanh = native.exp, native.tanh

    @native.njit
    def value_and_gradient(weights, ends, start, text):
        layers, steps = weights.shape[0], text.shape[0] - 1
        kept = np.empty((steps, layers, 6, WIDTH))  # the gates, the cell's tanh, what enters from below
        states = np.empty((steps + 1, layers, 2, WIDTH))
        outputs = np.empty((steps, WIDTH))
        states[0] = start
        scale = -1.0 / (steps * WIDTH)
        value = 0.0
        x, of_x, shares = np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH)
        for t in range(steps):
            for j in range(WIDTH):
                x[j] = text[t, j] * ends[0, j]
            for i in range(layers):
                forward(x, weights[i], states[t, i], kept[t, i], states[t + 1, i])
            total, dot, mass = 0.0, 0.0, 0.0
            for j in range(WIDTH):
                outputs[t, j] = x[j] * ends[1, j] + ends[2, j]
                shares[j] = exp(outputs[t, j])
                total += shares[j]
                dot += text[t + 1, j] * outputs[t, j]
                mass += text[t + 1, j]
            value += dot - mass * np.log(total + 2.0)
            for j in range(WIDTH):
                outputs[t, j] = scale * (text[t + 1, j] - mass * shares[j] / (total + 2.0))

        of_weights, of_ends, of_state = np.zeros_like(weights), np.zeros_like(ends), np.zeros_like(start)
        for t in range(steps - 1, -1, -1):
            for j in range(WIDTH):
                of_ends[1, j] += outputs[t, j] * states[t + 1, layers - 1, 0, j]
                of_ends[2, j] += outputs[t, j]
                of_x[j] = outputs[t, j] * ends[1, j]
            for i in range(layers - 1, -1, -1):
                back(of_x, weights[i], states[t, i], kept[t, i], of_weights[i], of_state[i])
            for j in range(WIDTH):
                of_ends[0, j] += of_x[j] * text[t, j]
        return value * scale, of_weights, of_ends

    @native.njit
    def forward(x, w, state, kept, out):
        """Compute a layer: `x` enters and becomes what leaves."""
        for j in range(WIDTH):
            h = state[0, j]
            forget = 1.0 / (1.0 + exp(-(x[j] * w[0, 0, j] + w[1, 0, j])))
            enter = 1.0 / (1.0 + exp(-(h * w[0, 1, j] + w[1, 1, j])))
            leave = 1.0 / (1.0 + exp(-(x[j] * w[0, 2, j] + w[1, 2, j])))
            change = tanh(h * w[0, 3, j] + w[1, 3, j])
            cell = state[1, j] * forget + enter * change
            bent = tanh(cell)
            kept[0, j], kept[1, j], kept[2, j] = forget, enter, leave
            kept[3, j], kept[4, j], kept[5, j] = change, bent, x[j]
            out[1, j] = cell
            x[j] = leave * bent
            out[0, j] = x[j]

    @native.njit
    def back(of_x, w, state, kept, of_w, of_state):
        """Turn the cotangents of what leaves a layer, and of its state, into those of what enters."""
        for j in range(WIDTH):
            forget, enter, leave, change, bent = kept[0, j], kept[1, j], kept[2, j], kept[3, j], kept[4, j]
            of_h = of_x[j] + of_state[0, j]
            of_cell = of_state[1, j] + of_h * leave * (1.0 - bent * bent)
            of_forget = of_cell * state[1, j] * forget * (1.0 - forget)
            of_enter = of_cell * change * enter * (1.0 - enter)
            of_leave = of_h * bent * leave * (1.0 - leave)
            of_change = of_cell * enter * (1.0 - change * change)
            of_w[0, 0, j] += of_forget * kept[5, j]
            of_w[0, 1, j] += of_enter * state[0, j]
            of_w[0, 2, j] += of_leave * kept[5, j]
            of_w[0, 3, j] += of_change * state[0, j]
            of_w[1, 0, j] += of_forget
            of_w[1, 1, j] += of_enter
            of_w[1, 2, j] += of_leave
            of_w[1, 3, j] += of_change
            of_state[0, j] = of_enter * w[0, 1, j] + of_change * w[0, 3, j]
            of_state[1, j] = of_cell * forget
            of_x[j] = of_forget * w[0, 0, j] + of_leave * w[0, 2, j]

    return value_and_gradient


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for layers, length in SIZES:
        weights, ends = rng.standard_normal((layers, 2, 4, WIDTH)), rng.standard_normal((3, WIDTH))
        text = np.float64(rng.random((length, WIDTH)) < 0.3)
        arguments = weights, ends, 0.1 * rng.standard_normal((layers, 2, WIDTH)), text
        calls = contenders(loss, arguments, loss, by_hand, wanted=2)
        if length > 1024:  # PyTorch and autograd, which take 10 and 20 s there, are measured on the small one
            calls = [call for call in calls if call.peer not in ("torch", "autograd")]
        yield Case(f"{layers} layers, {length} characters", calls, tolerance=1e-9, rounds=5)
