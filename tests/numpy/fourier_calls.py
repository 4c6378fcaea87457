"""Calls of numpy.fft, by name: a function of arrays and the arrays to call it on."""

import numpy as np

from tests.numpy.against_numpy import sample

fft = np.fft

X = sample((3, 5), "f64")
Z = sample((3, 4), "c128", 1)
C = sample((2, 3, 4), "f64", 2)
V = sample(4, "f64", 3)
NORMS = ("backward", "ortho", "forward")


def lengths(transform):
    """Return the calls of a transform with each length: shorter, longer, even, odd, one."""
    return lambda x: [transform(x, n) for n in (1, 2, 3, 5, 8)]


FOURIER = {
    "fft": (lambda x, z: (fft.fft(x), fft.ifft(x), fft.fft(z), fft.ifft(z, axis=0)), X, Z),
    "fft of lengths": (lengths(fft.fft), Z),
    "ifft of lengths": (lengths(fft.ifft), Z),
    "rfft": (lambda x, v: (fft.rfft(x), fft.rfft(x, axis=0), fft.rfft(v)), X, V),
    "rfft of lengths": (lengths(fft.rfft), X),
    "irfft": (lambda x, z: (fft.irfft(z), fft.irfft(z, 7), fft.irfft(x), fft.irfft(z, 4, 0)), X, Z),
    "irfft of lengths": (lengths(fft.irfft), Z),
    "hfft": (lambda z, x: (fft.hfft(z), fft.hfft(z, 5), fft.ihfft(x), fft.ihfft(x, 4, 0)), Z, X),
    "norms": (
        lambda z, x: [
            [f(z, norm=norm) for f in (fft.fft, fft.ifft, fft.irfft, fft.hfft)] + [fft.rfft(x, 4, 0, norm)]
            for norm in NORMS
        ],
        Z,
        X,
    ),
    "power spectrum": (lambda v: np.sum(abs(fft.rfft(v) ** 2)), V),
    "fftn": (lambda c: (fft.fftn(c), fft.ifftn(c, axes=(0,)), fft.fft2(c), fft.ifft2(c, norm="ortho")), C),
    "rfftn": (lambda c: (fft.rfftn(c), fft.rfftn(c, (3, 5), (1, 0)), fft.rfft2(c)), C),
    "irfftn": (lambda c: (fft.irfftn(c), fft.irfftn(c, (3, 5), (1, 0), "ortho"), fft.irfft2(c, s=(-1, 3))), C),
    "fftshift": (lambda c: (fft.fftshift(c), fft.ifftshift(c), fft.fftshift(c, 1), fft.ifftshift(c, (0, 2))), C),
    "a filter": (lambda x: fft.irfft(fft.rfft(x) * np.exp(-fft.rfftfreq(5)), 5), X),
}
