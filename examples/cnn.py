"""Handwritten digits: a convolutional network in plain NumPy, trained by Adam in one compiled step.

    python examples/cnn.py                    train, then report on images not seen in training
    python examples/cnn.py --plot cnn.png     the same, and draw how it went and what the first layer looks for

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
from fnad import nn, optim

CHANNELS = (1, 16, 32)
DENSE = 32 * 2 * 2
BATCH = 64
RATE = 4e-3
DECAY = 1e-2  # of the weights, by AdamW
SHIFT = 1  # pixels by which training images are moved, so that few are seen twice


# ---- the model: plain NumPy, which also runs without fnad --------------------------------------------------------


def logits(params, images):
    """Twice convolution, relu and pooling, then a dense layer; images are batch × 8 × 8."""
    hidden = images[:, None]
    for layer in params["convolutions"]:
        hidden = nn.conv(hidden, layer["kernel"], (1, 1), "SAME") + layer["bias"][:, None, None]
        hidden = nn.max_pool(np.maximum(hidden, 0), (2, 2), (2, 2))
    hidden = hidden.reshape(len(images), -1)
    return hidden @ params["dense"]["weight"] + params["dense"]["bias"]


def loss(params, images, labels):
    """Return the mean cross entropy of softmax(logits) with the labels."""
    z = logits(params, images)
    z = z - np.max(z, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(z), axis=1)) - z[np.arange(len(labels)), labels])


def initial_parameters(rng):
    def normal(*shape, inputs):
        return (rng.standard_normal(shape) * np.sqrt(2 / inputs)).astype(np.float32)

    convolutions = [
        {"kernel": normal(outputs, channels, 3, 3, inputs=9 * channels), "bias": np.zeros(outputs, np.float32)}
        for channels, outputs in pairwise(CHANNELS)
    ]
    dense = {"weight": normal(DENSE, 10, inputs=DENSE), "bias": np.zeros(10, np.float32)}
    return {"convolutions": convolutions, "dense": dense}


# ---- training ----------------------------------------------------------------------------------------------------


def train(images, labels, test_images, test_labels, epochs, seed):
    """Return the trained parameters, and per epoch the mean loss and the accuracy on the test images."""
    rng = np.random.default_rng(seed)
    steps = len(images) // BATCH
    rate = optim.warmup_cosine_decay_schedule(0.0, RATE, warmup_steps=steps, decay_steps=epochs * steps + 1)
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate, weight_decay=DECAY))

    @fnad.jit
    def training_step(params, state, images, labels):
        value, gradient = fnad.value_and_grad(loss)(params, images, labels)
        updates, state = optimizer.update(gradient, state, params)
        return optim.apply_updates(params, updates), state, value

    params = initial_parameters(rng)
    state = optimizer.init(params)
    losses, accuracies = [], []
    for epoch in range(epochs):
        order, total = rng.permutation(len(images)), 0.0
        for step in range(steps):
            batch = order[step * BATCH : (step + 1) * BATCH]
            params, state, value = training_step(params, state, shifted(images[batch], rng), labels[batch])
            total += value
            fnad.debug.progress(steps)
        fnad.debug.progress(epochs, "epoch")
        losses.append(total / steps)
        accuracies.append(np.mean(predict(params, test_images) == test_labels))
        if epoch % max(1, epochs // 10) == 0 or epoch == epochs - 1:
            print(f"epoch {epoch + 1:3d}   loss {losses[-1]:.4f}   test accuracy {100 * accuracies[-1]:.2f} %")
    return params, losses, accuracies


def shifted(images, rng):
    """Return the images, each moved by up to SHIFT pixels along both axes."""
    n, size = len(images), images.shape[1]
    padded = np.pad(images, ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT)))
    rows, columns = rng.integers(0, 2 * SHIFT + 1, (2, n, 1)) + np.arange(size)
    return padded[np.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]


@fnad.jit
def predict(params, images):
    return np.argmax(logits(params, images), axis=1)


# ---- what came of it ---------------------------------------------------------------------------------------------


def draw(file, params, images, labels, predicted, losses, accuracies):
    """Save the course of the training, the kernels of the first layer, and images taken for another digit."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (pictures alone need matplotlib)

    figure = Figure(figsize=(12, 4), layout="constrained")
    curves, kernels, gallery = figure.subfigures(1, 3, squeeze=False).ravel()
    above, below = curves.subplots(2, 1, sharex=True)
    epochs = np.arange(1, len(losses) + 1)
    above.plot(epochs, losses)
    above.set(ylabel="training loss", ylim=(0, None))
    below.plot(epochs, 100 * np.array(accuracies))
    below.set(xlabel="epoch", ylabel="test accuracy, %", ylim=(min(90, 100 * accuracies[0]), 100))

    kernels.suptitle("kernels of the first layer")
    first = params["convolutions"][0]["kernel"][:, 0]
    largest = np.max(np.abs(first))
    for panel, kernel in zip(kernels.subplots(4, 4).ravel(), first, strict=True):
        panel.imshow(kernel, cmap="RdBu", vmin=-largest, vmax=largest)
        panel.set_axis_off()

    wrong = np.flatnonzero(predicted != labels)[:12]
    gallery.suptitle(f"taken for another digit: {np.sum(predicted != labels)} of {len(labels)}")
    panels = gallery.subplots(3, 4).ravel()
    for panel in panels:
        panel.set_axis_off()
    for panel, i in zip(panels, wrong, strict=False):
        panel.imshow(images[i], cmap="gray_r")
        panel.set_title(f"{labels[i]} as {predicted[i]}", fontsize="small")
    figure.savefig(file, dpi=120)
    print(f"picture in {file}")


def main():
    parser = argparse.ArgumentParser(description="Train a convolutional network to read handwritten digits.")
    parser.add_argument("--epochs", type=int, default=30, help="passes over the training images (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights, the order and the shifts")
    parser.add_argument("--plot", metavar="FILE", help="draw the training, the first kernels and the misread digits")
    options = parser.parse_args()
    if options.plot and not find_spec("matplotlib"):
        parser.error("--plot draws by matplotlib, which is not installed: pip install matplotlib")

    digits = load_digits()
    images, test_images, labels, test_labels = train_test_split(
        (digits.images / 16).astype(np.float32),
        digits.target,
        test_size=0.25,
        stratify=digits.target,
        random_state=0,
    )
    print(f"{len(images)} images to learn from, {len(test_images)} to test on")
    start = time.perf_counter()
    params, losses, accuracies = train(images, labels, test_images, test_labels, options.epochs, options.seed)
    print(f"trained in {time.perf_counter() - start:.1f} s, compilation included")

    predicted = predict(params, test_images)
    right = np.sum(predicted == test_labels)
    print(f"\ntest accuracy {100 * right / len(test_labels):.2f} %   ({right} of {len(test_labels)} images)")
    if options.plot:
        draw(options.plot, params, test_images, test_labels, predicted, losses, accuracies)


if __name__ == "__main__":
    main()
