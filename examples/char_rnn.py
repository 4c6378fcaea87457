"""Sonnets, letter by letter: a gated recurrent unit in plain NumPy reads twenty of Shakespeare's, and writes on.

    python examples/char_rnn.py                     train, then write a few lines
    python examples/char_rnn.py --plot sonnets.png  the same, and draw how it went and what it expects
    python examples/char_rnn.py --text FILE         learn from another text

The whole training is one compiled call: a scan over steps, and in each a scan over letters with its derivative. The
unit is that of Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder" (2014), equations 5 to 8.
"""

import argparse
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import fnad
from fnad import optim, random

UNITS = 96
BATCH, LENGTH = 16, 64  # pieces of text in a step, and their letters
RATE, DECAY = 1e-2, 1.0  # so few sonnets are soon known by heart, which the decay of the weights prevents
HELD_OUT = 0.1  # of the text, at its end


# ---- the model -------------------------------------------------------------------------------------------------------


def advance(params, state, letters):
    """Return the next state and the logits of the next letter; states are batch × units, letters are numbers."""
    seen = params["embedding"][letters]
    gates = 1 / (1 + np.exp(-(seen + state @ params["recurrence"])[..., : 2 * UNITS]))
    reset, update = gates[..., :UNITS], gates[..., UNITS:]
    proposed = np.tanh(seen[..., 2 * UNITS :] + (reset * state) @ params["recurrence"][:, 2 * UNITS :])
    state = update * state + (1 - update) * proposed
    return state, state @ params["readout"] + params["bias"]


def surprise(params, text):
    """Return the mean over letters × batch of -log₂ of the probability that each letter had after those before it."""

    def step(state, letters):
        here, following = letters
        state, logits = advance(params, state, here)
        logits = logits - np.max(logits, axis=1, keepdims=True)
        likelihood = logits[np.arange(len(following)), following] - np.log(np.sum(np.exp(logits), axis=1))
        return state, np.mean(likelihood)

    start = np.zeros((text.shape[1], UNITS), np.float32)
    _, likelihoods = fnad.scan(step, start, (text[:-1], text[1:]))
    return -np.mean(likelihoods) / np.float32(np.log(2))


def initial_parameters(key, letters):
    shapes = {"embedding": (letters, 3 * UNITS), "recurrence": (UNITS, 3 * UNITS), "readout": (UNITS, letters)}
    keys = random.split(key, len(shapes))
    scale = np.float32(1 / np.sqrt(UNITS))
    pairs = zip(shapes.items(), keys, strict=True)
    params = {name: scale * random.normal(key, shape, np.float32) for (name, shape), key in pairs}
    return params | {"bias": np.zeros(letters, np.float32)}


# ---- training and writing --------------------------------------------------------------------------------------------


def training(text, letters, steps):
    """Return the compiled training: from a key to the parameters, and the course of the surprise, in bits."""
    cut = int(len(text) * (1 - HELD_OUT))
    descent = optim.adamw(optim.cosine_decay_schedule(RATE, steps), weight_decay=DECAY)
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), descent)
    every = max(1, steps // 50)

    def step(carry, key):
        params, state = carry
        starts = random.randint(key, (BATCH,), 0, cut - LENGTH)
        pieces = text[starts + np.arange(LENGTH + 1)[:, None]]
        value, gradient = fnad.value_and_grad(surprise)(params, pieces)
        updates, state = optimizer.update(gradient, state, params)
        return (optim.apply_updates(params, updates), state), value

    def some_steps(carry, numbered):
        number, key = numbered
        carry, values = fnad.scan(step, carry, random.split(key, every))
        result = np.mean(values), surprise(carry[0], text[cut:, None])
        fnad.cond(number % 5 == 4, show, lambda *_: None, every * (number + 1), *result)
        fnad.debug.progress(steps // every, f"{every} steps")
        return carry, result

    @fnad.jit
    def train(key):
        start_key, key = random.split(key)
        params = initial_parameters(start_key, letters)
        numbered = np.arange(steps // every), random.split(key, steps // every)
        (params, _), course = fnad.scan(some_steps, (params, optimizer.init(params)), numbered)
        return params, *course

    return train


def show(step, value, held_out):
    line = "step {:5d}   bits a letter {:.3f}   in text not seen {:.3f}"
    fnad.callback(lambda *numbers: print(line.format(*numbers)), step, value, held_out)


@fnad.jit
def write(params, key, start, temperature):
    """Return 400 letters that follow `start`, each drawn from what the network expects."""

    def step(carry, key):
        state, letter = carry
        state, logits = advance(params, state, letter)
        letter = random.categorical(key, logits / temperature)
        return (state, letter), letter

    state = np.zeros(UNITS, np.float32)
    return fnad.scan(step, (state, start), random.split(key, 400))[1]


@fnad.jit
def expectations(params, text):
    """Return, letter by letter, the probabilities of the one that follows."""
    logits = fnad.scan(lambda state, letter: advance(params, state, letter), np.zeros(UNITS, np.float32), text)[1]
    weights = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    return weights / np.sum(weights, axis=1, keepdims=True)


def draw(file, params, alphabet, text, steps, course):
    """Save the course of the training, and what the network expected at each letter of a line it had not seen."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (pictures alone need matplotlib)

    figure = Figure(figsize=(12, 5), layout="constrained")
    curve, image = figure.subplots(1, 2, width_ratios=(1, 2))
    for values, label in zip(course, ("training", "not seen"), strict=True):
        curve.plot(np.linspace(0, steps, len(values)), values, label=label)
    curve.set(xlabel="step", ylabel="bits a letter", ylim=(0, None))
    curve.legend()
    line = text[-100:]
    image.imshow(expectations(params, line).T[:, :-1], cmap="Greys", aspect="auto", vmax=1)
    image.plot(line[1:], "r.", markersize=3)
    image.set_xticks(range(len(line) - 1), [alphabet[i] for i in line[1:]], fontsize="xx-small")
    image.set_yticks(range(len(alphabet)), [repr(str(c))[1:-1] for c in alphabet], fontsize="xx-small")
    image.set(title="what was expected (grey) of each letter, and what came (red)")
    figure.savefig(file, dpi=120)
    print(f"picture in {file}")


def main():
    parser = argparse.ArgumentParser(description="Learn to write from a text, letter by letter.")
    parser.add_argument("--text", type=Path, default=Path(__file__).parent / "data" / "sonnets.txt", metavar="FILE")
    parser.add_argument("--steps", type=int, default=400, help="of the training (default: 400)")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights, the pieces and what is written")
    parser.add_argument("--plot", metavar="FILE", help="draw the training and what the network expects")
    options = parser.parse_args()
    if options.plot and not find_spec("matplotlib"):
        parser.error("--plot draws by matplotlib, which is not installed: pip install matplotlib")

    written = options.text.read_text(encoding="utf-8")
    alphabet, text = np.unique(list(written), return_inverse=True)
    print(f"{len(text)} letters of {len(alphabet)} kinds")
    begin = time.perf_counter()
    params, *course = training(text, len(alphabet), options.steps)(random.key(options.seed))
    print(f"trained in {time.perf_counter() - begin:.1f} s, compilation included\n")

    start = np.flatnonzero(alphabet == "\n")[0]
    print("".join(alphabet[write(params, random.key(options.seed + 1), start, np.float32(0.5))]))
    if options.plot:
        draw(options.plot, params, alphabet, text, options.steps, course)


if __name__ == "__main__":
    main()
