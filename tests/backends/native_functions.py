"""Functions that mean the same as Python and as native code."""

from __future__ import annotations

from fnad.backends.cpu.native import Word

TWO, THREE = 2, 3


def collatz(n: Word, most: Word) -> Word:
    steps = 0
    while n != 1 and steps < most:
        n = n // TWO if n % TWO == 0 else THREE * n + 1
        steps = steps + 1
    return steps


def of_case(kind: Word, n: Word) -> Word:
    found = -n
    match kind & 7:
        case 0 | 5:
            found = n << 1
        case 1:
            return 7
        case 2:
            found = n ^ kind
            if found < 0:
                return -1
        case _:
            pass
    return found


def divisors(n: Word, most: Word) -> Word:
    count = 0
    d = 0
    while True:
        d = d + 1
        if d > most or d > n:
            break
        if not (d and n % d == 0):
            continue
        count = count + 1
    return count


def triangle(n: Word, m: Word) -> Word:
    total = 0
    for i in range(n & 15):
        for j in range(m & 7):
            if j > i:
                total = total + (i | j)
            elif i == 4 or not j:
                total = total - 1
    return total


def greatest(a: Word, b: Word) -> Word:
    """By Euclid, recursively."""
    return a if b == 0 else greatest(b, a % b)


def holds(a: Word, b: Word) -> Word:
    return (a > 3 and b > 3) + 2 * (a == b or not a < b) + 4 * (a != 0 and 100 // a > 5)
