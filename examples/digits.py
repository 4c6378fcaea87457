"""Handwritten digits: a multi-layer perceptron in plain NumPy, whose whole training is one compiled call.

    python examples/digits.py                      train, then report on images not seen in training
    python examples/digits.py --plot digits.png    the same, and draw how it went
    python examples/digits.py --dump loops         print the program of the gradient: traced, transformed, …, asm

The data are scikit-learn's bundled digits: 1797 grey images of 8 x 8 pixels.
"""

import argparse
import time
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fnad
from fnad import optim, random
from fnad.cli import main as fnad_command

SIZES = (64, 128, 128, 10)
BATCH = 64
RATE, MOMENTUM = 0.1, 0.9
DECAY = 1e-3  # pulls the weights towards zero
NOISE = 0.15  # added to training images, so that none is seen twice
STAGES = ("traced", "transformed", "simplified", "loops", "source", "llvm", "asm")


# ---- the model: plain NumPy, which also runs without fnad --------------------------------------------------------


def logits(layers, images):
    hidden = images
    for layer in layers[:-1]:
        hidden = np.tanh(hidden @ layer["weight"] + layer["bias"])
    return hidden @ layers[-1]["weight"] + layers[-1]["bias"]


def loss(layers, images, labels):
    """Return the mean cross entropy of softmax(logits) with the labels, and the penalty on large weights."""
    z = logits(layers, images)
    z = z - np.max(z, axis=1, keepdims=True)
    log_likelihood = z[np.arange(len(labels)), labels] - np.log(np.sum(np.exp(z), axis=1))
    penalty = sum(np.sum(layer["weight"] ** 2) for layer in layers)
    return 0.5 * DECAY * penalty - np.mean(log_likelihood)


def initial_layers(key):
    return [
        {
            "weight": random.normal(key, (m, n), np.float32) * np.float32(np.sqrt(2 / m)),
            "bias": np.zeros(n, np.float32),
        }
        for key, (m, n) in zip(random.split(key, len(SIZES) - 1), pairwise(SIZES), strict=True)
    ]


# ---- training ----------------------------------------------------------------------------------------------------


def training(images, labels, test_images, test_labels, epochs):
    """Return the compiled training: from a key to the layers, and per epoch the mean loss and the test accuracy."""
    steps = len(images) // BATCH
    optimizer = optim.sgd(optim.cosine_decay_schedule(RATE, epochs * steps), MOMENTUM)

    def step(carry, batch):
        layers, state = carry
        chosen, key = batch
        noise = np.float32(NOISE) * random.normal(key, (BATCH, SIZES[0]), np.float32)
        value, gradient = fnad.value_and_grad(loss)(layers, images[chosen] + noise, labels[chosen])
        updates, state = optimizer.update(gradient, state, layers)
        return (optim.apply_updates(layers, updates), state), value

    def epoch(carry, numbered):
        number, key = numbered
        order_key, noise_key = random.split(key)
        order = random.permutation(order_key, len(images))[: steps * BATCH].reshape(steps, BATCH)
        carry, losses = fnad.scan(step, carry, (order, random.split(noise_key, steps)))
        result = np.mean(losses), np.mean(predict(carry[0], test_images) == test_labels)
        last = number == epochs - 1
        fnad.cond((number % max(1, epochs // 10) == 0) | last, show, lambda *_: None, number, *result)
        fnad.debug.progress(epochs, "epoch")
        return carry, result

    @fnad.jit
    def train(key):
        layers_key, epochs_key = random.split(key)
        layers = initial_layers(layers_key)
        numbered = np.arange(epochs), random.split(epochs_key, epochs)
        (layers, _), course = fnad.scan(epoch, (layers, optimizer.init(layers)), numbered)
        return layers, *course

    return train


def show(epoch, loss, accuracy):
    """Print how far the training is, from within it."""
    line = "epoch {:3d}   loss {:.4f}   test accuracy {:.2f} %"
    fnad.callback(lambda *numbers: print(line.format(*numbers)), epoch + 1, loss, 100 * accuracy)


def predict(layers, images):
    return np.argmax(logits(layers, images), axis=1)


# ---- what came of it ---------------------------------------------------------------------------------------------


def report(predicted, labels):
    """Print, for each digit, what it was taken for and how often that was right."""
    confusion = np.zeros((10, 10), int)
    np.add.at(confusion, (labels, predicted), 1)
    print("\ntrue   taken for " + "".join(f"{digit:4d}" for digit in range(10)) + "     right")
    for digit, row in enumerate(confusion):
        counts = "".join(f"{count or '.':>4}" for count in row)
        print(f"{digit:4d}             {counts}   {100 * row[digit] / row.sum():6.1f} %")
    right = np.trace(confusion)
    print(f"\ntest accuracy {100 * right / len(labels):.2f} %   ({right} of {len(labels)} images)")


def draw(file, images, labels, predicted, losses, accuracies):
    """Save the course of the training and the images that were taken for another digit."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (pictures alone need matplotlib)

    wrong = np.flatnonzero(predicted != labels)[:12]
    figure = Figure(figsize=(10, 4), layout="constrained")
    curves, gallery = figure.subfigures(1, 2, squeeze=False).ravel()
    above, below = curves.subplots(2, 1, sharex=True)
    epochs = np.arange(1, len(losses) + 1)
    above.plot(epochs, losses)
    above.set(ylabel="training loss", ylim=(0, None))
    below.plot(epochs, 100 * np.array(accuracies))
    below.set(xlabel="epoch", ylabel="test accuracy, %", ylim=(min(90, 100 * accuracies[0]), 100))
    gallery.suptitle(f"taken for another digit: {np.sum(predicted != labels)} of {len(labels)}")
    panels = gallery.subplots(3, 4).ravel()
    for panel in panels:
        panel.set_axis_off()
    for panel, i in zip(panels, wrong, strict=False):
        panel.imshow(images[i].reshape(8, 8), cmap="gray_r")
        panel.set_title(f"{labels[i]} as {predicted[i]}", fontsize="small")
    figure.savefig(file, dpi=120)
    print(f"picture in {file}")


def dump(stage):
    """Print the program that computes the loss and its gradient, at one stage of its way to machine code."""
    layers = ", ".join(f'{{"weight": f32[{m},{n}], "bias": f32[{n}]}}' for m, n in pairwise(SIZES))
    arguments = f"[{layers}], f32[{BATCH},{SIZES[0]}], i64[{BATCH}]"
    return fnad_command(["dump", f"{__file__}:loss", "--args", arguments, "--value-and-grad", "--stage", stage])


def main():
    parser = argparse.ArgumentParser(description="Train a network to read handwritten digits.")
    parser.add_argument("--epochs", type=int, default=30, help="passes over the training images (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights, the order and the noise")
    parser.add_argument("--plot", metavar="FILE", help="draw the training and the misread digits")
    stages = ", ".join(STAGES)
    parser.add_argument("--dump", metavar="STAGE", choices=STAGES, help=f"print the gradient's program: {stages}")
    options = parser.parse_args()
    if options.plot and not find_spec("matplotlib"):
        parser.error("--plot draws by matplotlib, which is not installed: pip install matplotlib")
    if options.dump:
        return dump(options.dump)

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    images, test_images, labels, test_labels = train_test_split(
        images, labels, test_size=0.25, stratify=labels, random_state=0
    )
    print(f"{len(images)} images to learn from, {len(test_images)} to test on")
    start = time.perf_counter()
    train = training(images, labels, test_images, test_labels, options.epochs)
    layers, losses, accuracies = train(random.key(options.seed))
    print(f"trained in {time.perf_counter() - start:.1f} s, compilation included")

    predicted = predict(layers, test_images)
    report(predicted, test_labels)
    if options.plot:
        draw(options.plot, test_images, test_labels, predicted, losses, accuracies)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
