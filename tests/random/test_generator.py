"""Philox against the published vectors; keys, and that nothing derived from one has a block in common."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

import fnad
from fnad import draws, errors, random
from fnad.backends.cpu.executor import compile_program
from fnad.ir.builder import trace
from fnad.ir.types import Aval
from fnad.ops.random_bits import U64, philox
from fnad.transforms.interpret import interpret

VECTORS = {
    "zeros": ("00000000 " * 4, "00000000 " * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    "ones": ("ffffffff " * 4, "ffffffff " * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    "pi": ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
}
"""Counter, key and block of philox4x32-10, word by word: the known answers that come with Random123."""


def pairs(words: str) -> list[int]:
    """Return numbers of 64 bits from words of 32, the lower first."""
    values = [int(word, 16) for word in words.split()]
    return [low | high << 32 for low, high in zip(values[::2], values[1::2], strict=True)]


@pytest.mark.parametrize("execute", [interpret, lambda program, given: compile_program(program)(given)])
@pytest.mark.parametrize("name", VECTORS)
def test_philox_computes_the_published_vectors(name, execute):
    (index, stream), (key,), expected = map(pairs, VECTORS[name])
    program = trace(lambda i, k: [philox(i, k, stream=stream, half=h) for h in (0, 1)], Aval(U64), Aval(U64))
    assert [int(half) for half in execute(program, [np.array(index, U64), np.array(key, U64)])] == expected


def test_bits_of_a_key_are_the_first_words_of_its_blocks():
    (_, _), (key,), (low, _) = map(pairs, VECTORS["zeros"])
    assert random.bits(random.key(key)) == low
    assert random.bits(random.key(key), dtype=np.uint32) == 0x6627E8D5
    assert random.bits(random.key(key), dtype=np.uint8) == 0xD5


# ---- keys ------------------------------------------------------------------------------------------------------------


def test_derived_keys_are_blocks_of_streams_of_their_own():
    key = random.key(5)
    given = np.array([7], U64), np.array([5], U64)
    assert random.split(key, 8)[7] == philox.evaluate(*given, stream=draws.SPLIT, half=0)
    assert random.fold_in(key, 7) == philox.evaluate(*given, stream=draws.FOLD_IN, half=0)
    assert random.bits(key, (8,))[7] == philox.evaluate(*given, stream=draws.DRAW, half=0)


def test_streams_of_one_key_have_no_counter_in_common():
    gamma = range(2 * draws.ATTEMPTS + 1)
    used = [draws.DRAW + attempt for attempt in gamma] + [draws.SPLIT, draws.FOLD_IN]
    assert len(set(used)) == len(used)


def test_all_derived_keys_differ():
    key = random.key(0)
    children = random.split(key, 1000)
    grandchildren = [random.split(child, 10) for child in children]
    folded = [random.fold_in(key, i) for i in range(1000)]
    everything = np.concatenate([[key], children, *grandchildren, folded, random.bits(key, (1000,))])
    assert len(np.unique(everything)) == len(everything)


def test_siblings_and_streams_are_uncorrelated():
    first, second = random.split(random.key(0))
    normals = [random.normal(k, (20_000,)) for k in (random.key(0), first, second, random.fold_in(random.key(0), 0))]
    correlations = np.corrcoef(normals)[np.triu_indices(4, 1)]
    assert np.max(np.abs(correlations)) < 4 / np.sqrt(20_000)


def test_neighbouring_seeds_are_uncorrelated():
    draws_of_seeds = np.array([random.uniform(random.key(seed), (50,)) for seed in range(400)])
    assert stats.kstest(draws_of_seeds[:, 0], "uniform").pvalue > 0.01
    assert abs(np.corrcoef(draws_of_seeds[:-1, 0], draws_of_seeds[1:, 0])[0, 1]) < 4 / np.sqrt(400)


def test_splits_begin_alike_and_take_shapes():
    key = random.key(3)
    assert_array_equal(random.split(key, 5)[:2], random.split(key))
    assert_array_equal(random.split(key, (2, 3)), random.split(key, 6).reshape(2, 3))


@pytest.mark.parametrize(
    ("seed", "number"),
    [(0, 0), (2**64 - 1, 2**64 - 1), (-1, 2**64 - 1), (np.int8(-2), 2**64 - 2), (np.uint64(7), 7), (np.array(9), 9)],
)
def test_key_of_a_seed_is_its_64_bits(seed, number):
    key = random.key(seed)
    assert key == number
    assert key.dtype == U64
    assert key.shape == ()


@pytest.mark.parametrize("data", [5, -5, np.int32(-5), np.uint8(5), np.int64(2**40)])
def test_traced_integers_give_the_same_keys(data):
    key = random.key(1)
    assert fnad.jit(random.fold_in)(key, data) == random.fold_in(key, data)
    assert fnad.jit(random.key)(data) == random.key(data)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.key(2**64), errors.IntegerRangeError, "a seed is an integer from -2**63 to 2**64 - 1"),
        (lambda: random.key(-(2**63) - 1), OverflowError, "not -9223372036854775809"),
        (lambda: random.key(1.0), errors.DtypeError, "a seed is an integer, not float64"),
        (lambda: random.key([1, 2]), errors.ShapeError, "a seed is one integer, not an array of shape (2,)"),
        (lambda: random.fold_in(random.key(0), 0.5), TypeError, "what is folded into a key is an integer"),
        (lambda: random.normal(0), errors.DtypeError, "a key is a u64 number, not int"),
        (lambda: random.normal(np.int64(0)), TypeError, "a key is a u64 number, not int64"),
        (lambda: random.normal(np.zeros(2, np.uint32)), TypeError, "a key is a u64 number, not uint32"),
        (lambda: random.normal(random.split(random.key(0))), ValueError, "a key is one number, not an array of shape"),
        (lambda: random.split(random.key(0), -1), ValueError, "negative dimensions are not allowed"),
        (lambda: fnad.jit(random.normal)(np.int64(0)), TypeError, "a key is a u64 number, not int64"),
    ],
)
def test_what_is_no_key_is_refused(call, error, message):
    with pytest.raises(error) as refused:
        call()
    assert message in str(refused.value)
    assert "test_generator.py" in str(refused.value)
