"""The program that the tests of `fnad.distributed` start in several ranks: `mpiexec -n 2 python FILE`.

Each rank draws the arguments of all ranks, and so knows what NumPy computes of them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

import fnad
from fnad import distributed
from fnad.ops import collectives

RANK, SIZE = distributed.rank(), distributed.size()
RNG = np.random.default_rng(3)
X, CT, T = RNG.normal(size=(3, SIZE, SIZE, 2))
"""The arguments, cotangents and tangents, a row for each rank."""

LAST = SIZE - 1
COLLECTIVES = {
    "psum": (distributed.psum, lambda x: np.broadcast_to(x.sum(0), x.shape)),
    "pmean": (distributed.pmean, lambda x: np.broadcast_to(x.mean(0), x.shape)),
    "pmax": (distributed.pmax, lambda x: np.broadcast_to(x.real.max(0) + 0 * x, x.shape)),
    "all_gather": (distributed.all_gather, lambda x: np.broadcast_to(x, (SIZE, *x.shape))),
    "reduce_scatter": (distributed.reduce_scatter, lambda x: x.sum(0)),
    "broadcast": (lambda x: distributed.broadcast(x, LAST), lambda x: np.broadcast_to(x[LAST], x.shape)),
}


def compiled(f: Any) -> Any:
    """The function under `jit`, compiled at the first call."""
    g = fnad.jit(f)

    def call(*args: Any) -> Any:
        with fnad.config.override(executor="compiled"):
            return g(*args)

    return call


def check_values_and_derivatives() -> None:
    """Each collective, in stacks too, and its derivatives against differences of all ranks' results."""
    for name, (collective, expected) in COLLECTIVES.items():
        for f in (collective, fnad.jit(collective), compiled(collective)):
            assert_allclose(f(X[RANK]), expected(X)[RANK], rtol=1e-14, err_msg=name)
        shape = expected(X).shape
        along = lambda x, t, e=expected: (e(x + 1e-6 * t) - e(x - 1e-6 * t)) / 2e-6  # noqa: E731
        ct = np.cos(np.arange(np.prod(shape))).reshape(shape)
        units = np.eye(X.size).reshape(-1, *X.shape)
        pulled = np.reshape([np.sum(ct * along(X, unit)) for unit in units], X.shape)
        push = lambda x, t, f=collective: fnad.jvp(f, (x,), (t,))[1]  # noqa: E731
        pull = lambda x, ct, f=collective: fnad.vjp(f, x)[1](ct)[0]  # noqa: E731
        twice = lambda x, t, f=collective: fnad.jet(lambda x: f(x) ** 2, (x,), ([t],))[1][0]  # noqa: E731
        for f, given, found in ((push, T, along(X, T)), (pull, ct, pulled), (twice, T, 2 * expected(X) * along(X, T))):
            for g in (f, compiled(f)):
                assert_allclose(g(X[RANK], given[RANK]), found[RANK], rtol=1e-7, atol=1e-8, err_msg=name)
        stack, ct = np.stack([X[RANK], T[RANK], X[RANK]]), ct[RANK]
        for f in (collective, lambda x, pull=pull, ct=ct: pull(x, ct)):
            rows = [f(x) for x in stack]
            for g in (fnad.vmap(f), fnad.jit(fnad.vmap(f))):
                assert_allclose(g(stack), rows, rtol=1e-13, err_msg=name)


def check_programs() -> None:
    """Collectives in loops, whose gradients send in reverse order."""

    def after(x: Any) -> Any:
        return fnad.scan(lambda c, _: (distributed.pmean(np.sin(c) * (RANK + 1)), None), x, length=4)[0]

    def until(x: Any) -> Any:
        step = lambda c: (c[0] + 1, distributed.pmean(np.sin(c[1]) * (RANK + 1)))  # noqa: E731
        return fnad.while_loop(lambda c: c[0] < 4, step, (0, x))[1]

    def of_all(x: Any) -> Any:
        scales = np.arange(1, SIZE + 1)[:, None, None]
        for _ in range(4):
            x = np.broadcast_to((np.sin(x) * scales).mean(0), x.shape)
        return x

    unit = np.zeros(X.shape, complex)
    unit[RANK, 0, 1] = 1e-30j
    slope = np.imag(np.sum(of_all(X + unit))) / 1e-30
    for loop in (after, until):
        for f in (loop, compiled(loop), fnad.checkpoint(loop)):
            assert_allclose(f(X[RANK]), of_all(X)[RANK], rtol=1e-13)
            assert_allclose(fnad.grad(lambda x, f=f: np.sum(f(x)))(X[RANK])[0, 1], slope, rtol=1e-12)


def check_messages() -> None:
    """Collectives unread, twice, of every dtype, and of losses that are differentiated."""

    def sent(x: Any) -> Any:
        distributed.psum(x)
        return distributed.psum(x) + distributed.psum(x)

    assert str(fnad.jit(sent).lower(X[RANK]).program).count("psum(") == 3
    assert_allclose(fnad.jit(sent)(X[RANK]), 2 * X.sum(0), rtol=1e-14)
    local = lambda x: np.mean(np.cos(x))  # noqa: E731
    slopes = distributed.pmean(fnad.grad(local)(X[RANK]))
    for loss, times in ((distributed.pmean, 1), (distributed.psum, SIZE)):
        through = fnad.grad(lambda x, loss=loss: loss(local(x)))(X[RANK])
        assert_allclose(distributed.pmean(through), times * slopes, rtol=1e-13)
    tree = {
        "a": X[RANK],
        "b": [X[RANK, 0].astype("f4"), 1.5, {}],
        "c": (T[RANK], RANK + 1, True),
        "d": np.ones((200, 100)),
    }
    everything = distributed.all_gather(tree)
    for f in (distributed.psum, compiled(distributed.psum), compiled(lambda tree: distributed.psum(tree))):
        found = f(tree)
        fnad.tree.map(lambda a, b: assert_allclose(a, b.sum(0), rtol=1e-6), found, everything)
        kinds = [(x.dtype, x.shape) for x in fnad.tree.leaves(found)]
        assert kinds == [(distributed.psum(x).dtype, np.shape(x)) for x in fnad.tree.leaves(tree)]
    weighted = lambda t: fnad.tree.reduce(lambda a, b: a + np.sum(b**2), distributed.pmean(t), 0.0)  # noqa: E731
    two = {"a": X[RANK], "b": T[RANK]}
    separate = lambda t: np.sum(distributed.pmean(t["a"]) ** 2) + np.sum(distributed.pmean(t["b"]) ** 2)  # noqa: E731
    slopes = fnad.grad(weighted)(two), fnad.grad(separate)(two)
    fnad.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-13), *slopes)
    counts = {"a": distributed.psum(True), "b": (distributed.psum(np.int8(3)), distributed.psum(np.float32(0.5)))}
    assert counts == {"a": SIZE, "b": (3 * SIZE, SIZE / 2)}
    assert counts["b"][0].dtype == np.int8
    for dtype in ("i1", "u2", "i8", "f4", "f8", "c8", "c16"):
        for f in (distributed.psum, compiled(distributed.psum)):
            found = f(np.full((2, 0, 3), 1, dtype)), f(np.full((2, 3), 2, dtype))
            assert [(x.dtype, x.shape) for x in found] == [(np.dtype(dtype), (2, 0, 3)), (np.dtype(dtype), (2, 3))]
            assert (found[1] == 2 * SIZE).all()
    assert np.isnan(distributed.pmax(np.nan if RANK == 0 else 1.0))


def check_refusals() -> None:
    """What no rank may do, compiled or not."""
    total = lambda x: distributed.psum(x)  # noqa: E731 - one line for both
    psum = compiled(total)
    assert_allclose((psum if RANK else total)(X[RANK]), X.sum(0), rtol=1e-14)
    for call, words in (
        (lambda: distributed.broadcast(1.0, SIZE), "there is no rank"),
        (lambda: distributed.reduce_scatter(np.ones(SIZE + 1)), "not a row for each"),
        (lambda: distributed.psum(np.ones(RANK + 1)), "the ranks do not agree at psum of f64["),
        (lambda: distributed.psum(dict.fromkeys("ab" if RANK else "ba", 1.0)), "distributed_program.py:"),
        (lambda: psum(np.ones(RANK + 1)), "the ranks do not agree at psum in"),
        (lambda: psum(X[RANK]) if RANK else distributed.all_gather(X[RANK]), "the ranks do not agree"),
        (lambda: fnad.grad(lambda x: x if distributed.psum(x) > 0 else -x)(1.0), "distributed_program.py"),
    ):
        try:
            call()
        except fnad.errors.FnadError as error:
            assert words in str(error), error  # noqa: PT017
        else:
            raise AssertionError(words)


def main(part: str) -> None:
    """Run the checks, or a part that ends with an error on each rank."""
    if part != "checks":
        fail(part)
        return
    check_values_and_derivatives()
    check_programs()
    check_messages()
    if SIZE > 1:
        check_refusals()
    print(f"rank {RANK} of {SIZE} is done\n", end="")


def fail(part: str) -> None:
    """Fail on a rank, or disagree with the other one."""
    match part:
        case "one fails":
            if RANK == 0:
                raise ValueError("rank 0 cannot go on")
            distributed.psum(1.0)
        case "one ends":
            if RANK == 0:
                distributed.psum(1.0)
        case "other programs":
            (distributed.psum if RANK == 0 else distributed.all_gather)(1.0)
        case "other shapes":
            compiled(lambda x: fnad.fori_loop(0, 3, lambda i, y: distributed.psum(y), x))(np.ones(2 + RANK))
        case "other versions":
            collectives.__version__ = f"0.{RANK}"
            distributed.psum(1.0)
        case "other lines":
            fnad.fori_loop(0, 2 + RANK, lambda i, x: distributed.psum(x), 1.0)
            distributed.psum(1.0)
        case _:
            raise ValueError(part)


if __name__ == "__main__":
    distributed.run(main, sys.argv[1])
