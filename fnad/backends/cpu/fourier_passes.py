"""Transforms in the lanes of vectors: chains of passes between two buffers.

Each pass is for a prime factor of the length or a factor 4, and the results are in order: Stockham's method (Van Loan,
"Computational Frameworks for the Fast Fourier Transform", 1.7). A prime p above `LARGEST_FACTOR`, where p - 1 has no
such factor, is a cyclic convolution of p - 1 numbers (Rader, "Discrete Fourier transforms when the number of data
samples is prime", 1968). Other lengths with a large factor are convolutions of a longer length (Bluestein, "A linear
filtering approach to the computation of discrete Fourier transform", 1970).
"""

from __future__ import annotations

from functools import cache, partial
from itertools import count
from math import prod

import numpy as np

from fnad.backends.cpu.lanes import Buffers, Complex, Lanes, Read, Write
from fnad.backends.cpu.matrices import each
from fnad.backends.cpu.ufunc_loops import LONG
from fnad.backends.llvm.emitter import Value

LARGEST_FACTOR = 13
"""A pass of a prime factor p takes p²/2 multiplications and additions for p numbers."""


@cache
def factors(n: int) -> tuple[int, ...]:
    """The factors of n: fours, at most one two, and odd primes."""
    found: list[int] = []
    for factor in (4, 2, *range(3, n + 1, 2)):
        while n % factor == 0:
            found.append(factor)
            n //= factor
    return tuple(found)


def is_smooth(n: int) -> bool:
    return max(factors(n), default=1) <= LARGEST_FACTOR


@cache
def padded(n: int) -> int:
    """The length of a convolution of 2n - 1 numbers: the next one whose prime factors are 2, 3 and 5."""
    return next(m for m in count(2 * n - 1) if max(factors(m), default=1) <= 5)


def generated(p: int) -> np.ndarray:
    """The powers of the least generator of the numbers below a prime p, under multiplication."""
    bases = ([pow(base, n, p) for n in range(p - 1)] for base in range(2, p))
    return np.array(next(powers for powers in bases if 1 not in powers[1:]))


def roots(n: int) -> np.ndarray:
    """The powers of exp(-2πi/n), from angles up to π/4, so that they are exact where they can be."""
    octant, rest = np.divmod(8 * np.arange(n), n)
    angle = np.where(octant % 2, n - rest, rest) * (np.pi / 4 / n)
    cos, sin = np.cos(angle), np.sin(angle)
    is_steep = (octant + 1) // 2 % 2 == 1
    real, imaginary = np.where(is_steep, sin, cos), np.where(is_steep, cos, sin)
    is_left, is_below = (octant + 2) // 4 % 2 == 1, octant >= 4
    return np.where(is_left, -real, real) + 0.0 + 1j * (np.where(is_below, imaginary, -imaginary) + 0.0)


class Passes(Lanes):
    """Lanes that are transformed."""

    def chain(self, n: int, buffers: Buffers) -> Buffers:
        """Transform n complex numbers in the first buffer; return the buffers, that with the result first."""
        p = max(factors(n), default=1)
        if p <= LARGEST_FACTOR:
            return self.passes(n, buffers)
        return self.by_rotation(n, buffers) if is_smooth(n - 1) and p == n else self.by_chirp(n, buffers)

    def by_chirp(self, n: int, buffers: Buffers) -> Buffers:
        """Transform as a convolution of a length without large factors."""
        builder, m, zero = self.builder, padded(n), (self.constant(0.0), self.constant(0.0))
        chirp = self.table(f"chirp.{n}", lambda: roots(2 * n)[np.arange(n) ** 2 % (2 * n)])

        def kernel() -> np.ndarray:
            wave = np.zeros(m, complex)
            wave[:n] = roots(2 * n)[np.arange(n) ** 2 % (2 * n)].conj()
            wave[1 - n :] = wave[n - 1 : 0 : -1]
            return np.fft.fft(wave) / m

        with each(builder, n) as index:
            self.write(buffers[0], index, self.product(self.read(buffers[0], index), self.same(chirp, index)))
        with each(builder, m - n) as index:
            self.write(buffers[0], builder.add(index, LONG(n)), zero)
        found = self.filtered(m, self.passes(m, buffers), self.table(f"spectrum.{n}.{m}", kernel))
        with each(builder, n) as index:
            turned = self.product(self.read(found[0], index)[::-1], self.same(chirp, index))
            self.write(found[0], index, turned)
        return found

    def filtered(self, m: int, buffers: Buffers, spectrum: Value) -> Buffers:
        """Multiply by a spectrum and transform back, with the parts exchanged."""
        with each(self.builder, m) as index:
            product = self.product(self.read(buffers[0], index), self.same(spectrum, index))
            self.write(buffers[0], index, product[::-1])
        return self.passes(m, buffers)

    def by_rotation(self, n: int, buffers: Buffers) -> Buffers:
        """Transform by a convolution of n - 1 numbers, in the order of the powers of a generator."""
        builder, m, zero = self.builder, n - 1, LONG(0)
        powers = generated(n)
        inverse = powers[-np.arange(m)]

        def kernel() -> np.ndarray:
            wave = np.fft.fft(roots(n)[inverse]) / m
            wave[0] = -1 / m
            return wave

        spectrum = self.table(f"rotation.{n}", kernel)
        given, moved = buffers
        with each(builder, m) as index:
            self.write(moved, index, self.read(given, self.integer(f"powers.{n}", powers, index)))
        first = self.read(given, zero)
        found, free = self.passes(m, (moved, given))
        rest = self.read(found, zero)
        self.write(found, zero, self.sum(rest, self.scaled(first, -m)))  # the spectrum divides the first element by -m
        found, free = self.filtered(m, (found, free), spectrum)
        with each(builder, m) as index:
            place = self.integer(f"inverse.{n}", inverse, index)
            self.write(free, place, self.read(found, index)[::-1])
        self.write(free, zero, self.sum(first, rest))
        return free, found

    def passes(self, n: int, buffers: Buffers, read: Read | None = None, write: Write | None = None) -> Buffers:
        """Transform n numbers without large factors, which the first pass reads and the last one writes elsewhere."""
        builder, radices = self.builder, factors(n)
        root = self.table(f"roots.{n}", lambda: roots(n))
        for number, radix in enumerate(radices):
            source, target = buffers
            done, is_last = prod(radices[:number]), number + 1 == len(radices)
            take = read if read is not None and number == 0 else partial(self.read, source)
            give = write if write is not None and is_last else partial(self.write, target)
            rest = n // done // radix
            with each(builder, rest) as k:
                step = builder.mul(k, LONG(done))
                turns = [] if is_last else [self.same(root, builder.mul(step, LONG(t))) for t in range(1, radix)]
                begin = builder.mul(step, LONG(radix))
                with each(builder, done) as q:
                    first, second = builder.add(step, q), builder.add(begin, q)
                    places = [builder.add(first, LONG(done * rest * r)) for r in range(radix)]
                    for t, value in enumerate(self.butterfly([take(place) for place in places])):
                        turned = self.product(value, turns[t - 1]) if turns and t else value
                        give(builder.add(second, LONG(done * t)), turned)
            buffers = target, source
        return buffers

    def butterfly(self, a: list[Complex]) -> list[Complex]:
        """The transform of 2, 4, or an odd number of numbers."""
        p = len(a)
        if p == 2:
            return [self.sum(*a), self.difference(*a)]
        if p == 4:
            (even, left), (odd, right) = self.butterfly(a[0::2]), self.butterfly(a[1::2])
            down, up = self.quarter(left, right)
            return [self.sum(even, odd), down, self.difference(even, odd), up]
        halves = range(1, p // 2 + 1)
        sums = [self.sum(a[r], a[p - r]) for r in halves]
        differences = [self.difference(a[r], a[p - r]) for r in halves]
        total, root = a[0], roots(p)
        for number in sums:
            total = self.sum(total, number)
        found = [total] * p
        for t in halves:
            middle, turned = a[0], None
            for r, both, apart in zip(halves, sums, differences, strict=True):
                turn = root[r * t % p]
                middle = self.sum(middle, self.scaled(both, turn.real))
                part = self.scaled(apart, -turn.imag)
                turned = part if turned is None else self.sum(turned, part)
            assert turned is not None
            found[t], found[p - t] = self.quarter(middle, turned)
        return found

    def quarter(self, a: Complex, b: Complex) -> tuple[Complex, Complex]:
        """A - i b and a + i b."""
        down = self.add(a[0], b[1]), self.sub(a[1], b[0])
        return down, (self.sub(a[0], b[1]), self.add(a[1], b[0]))
