"""Operations of NumPy, SciPy and control flow, one at a time: each value and gradient that JAX computes, too.

A row is a text that both systems evaluate; the names of its arguments are those of `arguments`.
"""

import linecache
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from types import CodeType
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

ELEMENTWISE = """
np.negative(x); abs(x); x + y; x - y; x * y; x / p; x ** 2; x ** 3; x ** 5; p ** y; p ** 0.5; p ** -1.5; np.sign(x)
np.floor(x); np.sin(x); np.cos(x); np.tan(x); np.arcsin(u); np.arccos(u); np.arctan(x); np.arctan2(x, y)
np.hypot(x, y); np.sinc(x); np.sinh(x); np.cosh(x); np.tanh(x); np.arcsinh(x); np.arccosh(1 + p); np.arctanh(u)
np.exp(x); np.exp2(x); np.expm1(x); np.log(p); np.log2(p); np.log10(p); np.log1p(p); np.logaddexp(x, y)
np.logaddexp2(x, y); np.sqrt(p); np.cbrt(x); np.square(x); np.reciprocal(p); np.maximum(x, y); np.minimum(x, y)
np.fmax(x, y); np.clip(x, -1, 1); np.fmod(x, p); np.remainder(x, p); np.floor_divide(x, p); np.trunc(x); np.rint(x)
np.copysign(x, y); np.heaviside(x, 0.5); np.nan_to_num(x); np.where(m, x, y); np.where(x > 0, np.log1p(p), np.exp(x))
np.select([x > 1, x > 0], [x, y], 0); np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t * t])
np.real((x + 1j * y) ** 2); np.abs(x + 1j * y); np.angle(x + 1j * y); np.exp(1j * x); np.sqrt(x + 1j * y)
np.log(x + 1j * y); np.deg2rad(x); np.ldexp(x, 3); np.isnan(x); np.logical_and(m, x > 0); np.isclose(x, y)
np.signbit(x); np.nextafter(x, y); np.i0(x); np.modf(x)[0]; nn.relu(x); nn.sigmoid(x); nn.silu(x); nn.gelu(x)
nn.softplus(x); nn.elu(x); nn.selu(x); nn.mish(x); nn.hard_tanh(x); nn.log_sigmoid(x); nn.celu(x); nn.leaky_relu(x)
nn.hard_silu(x); nn.soft_sign(x); nn.relu6(x)
"""

SPECIAL = """
special.erf(x); special.erfc(x); special.erfinv(u); special.erfcx(x); special.dawsn(x); special.gamma(p)
special.beta(p, g); special.gammaln(p); special.digamma(p); special.polygamma(1, p); special.zeta(g, p)
special.betaln(p, g); special.ndtr(x); special.ndtri(u); special.log_ndtr(x); special.logit(u); special.expit(x)
special.i0(x); special.i1(x); special.i0e(x); special.i1e(x); special.exp1(p); special.expi(p); special.expn(2, p)
special.entr(p); special.xlogy(p, g); special.xlog1py(p, u); special.rel_entr(p, g); special.kl_div(p, g)
special.gammainc(g, x ** 2); special.spence(p); special.gammaincc(g, x ** 2); special.betainc(p, g, u)
special.poch(p, g); special.boxcox(p, u); special.boxcox1p(p, u); special.multigammaln(1 + p, 3); special.sici(p)[0]
special.fresnel(x)[0]; special.logsumexp(x); special.softmax(x); special.log_softmax(x); special.logsumexp(R, axis=1)
special.softmax(R, axis=0); special.softmax(T, axis=1); special.log_softmax(T, axis=1); special.logsumexp(T, axis=1)
np.exp(T) / np.sum(np.exp(T), axis=1, keepdims=True); special.log_softmax(T, axis=1)[:, 3]; np.sum(np.exp(T), axis=1)
(T - T.mean(axis=1, keepdims=True)) / np.sqrt(T.var(axis=1, keepdims=True) + 1e-5)
stats.norm.pdf(x); stats.norm.logpdf(x, y, p); stats.norm.cdf(x); stats.norm.logcdf(x)
stats.norm.ppf(u); stats.t.logpdf(x, g); stats.gamma.logpdf(p, g); stats.beta.logpdf(u, g, p); stats.expon.logpdf(p)
stats.chi2.logpdf(p, g); stats.cauchy.cdf(x); stats.laplace.logpdf(x); stats.logistic.logpdf(x)
stats.pareto.logpdf(1 + p, g); stats.poisson.logpmf(c, p); stats.binom.logpmf(c, 8, u); stats.nbinom.logpmf(c, 4, u)
stats.gumbel_r.logpdf(x); stats.vonmises.logpdf(x, p); stats.multivariate_normal.logpdf(b, np.zeros(b.shape), S)
stats.dirichlet.logpdf(b ** 2 / np.sum(b ** 2), 1 + b ** 2); stats.gaussian_kde(b)(y[:100])
"""

ARRAYS = """
np.sum(x); np.sum(R, axis=0); np.sum(R, axis=1); np.sum(X, axis=1); np.sum(np.exp(X)); np.sum(np.sin(X) * x[:, None])
np.prod(1 + 0.01 * b); np.mean(x); np.mean(R, axis=0); np.var(x); np.std(R, axis=1); np.max(x); np.min(R, axis=1)
np.ptp(x); np.max(X, axis=1); np.argmax(x); np.any(m); np.count_nonzero(m); np.nansum(x); np.nanmean(x); np.nanvar(x)
np.nanmax(x); np.average(x, weights=p); np.median(x); np.quantile(x, 0.3); np.percentile(R, 20, axis=1)
np.nanquantile(x, 0.3); np.cumsum(x); np.cumprod(1 + 0.001 * b); np.cumsum(R, axis=0); np.cumsum(R, axis=1)
np.diff(x); np.gradient(x); np.ediff1d(x); np.trapezoid(x); np.interp(x, np.sort(b), b); np.convolve(x, b[:32])
np.correlate(x, b[:32], mode='same'); np.cov(R[:30]); np.corrcoef(R[:30]); np.histogram(x, bins=20)[0]
np.digitize(x, np.linspace(-2, 2, 9)); np.searchsorted(np.sort(y), x); np.bincount(k, weights=x, length=x.size)
np.sort(x); np.argsort(x); np.sort(R, axis=1); np.partition(x, 3); np.unwrap(x); np.cross(X, V); np.dot(x, y)
np.vdot(x, y); np.inner(R, R); np.outer(b, b); np.matmul(R, R.T); R.T @ R; R @ R[0]; np.tensordot(R, R, 2)
np.einsum('ij,kj->ik', R, R); np.einsum('ij,ij->i', X, V); np.einsum('nij,nj->ni', D, E); np.vecdot(X, V)
np.kron(A[:8, :8], A[:9, :9]); np.trace(A); np.linalg.norm(x); np.linalg.norm(X, axis=1); D @ D; D @ E[:, :, None]
np.linalg.norm(X[:300, None] - V[None, :300], axis=-1); np.exp(-np.sum((X[:300, None] - V[None, :300]) ** 2, -1))
np.concatenate([x, y]); np.concatenate([R.ravel(), x]); np.concatenate([R, R], axis=1); np.stack([x, y], axis=1)
np.vstack([R, R]); np.concatenate([R[:, :5].ravel(), R[:, 1:].ravel()]); np.stack([x, y, p]); np.hstack([x, y])
np.dstack([R, R]); np.block([[R, R], [R, R]]); np.append(x, y); np.column_stack([x, y]); np.split(x, 2)[1]
np.array_split(x, 3)[1]; np.tile(x, 3); np.repeat(x, 3); np.roll(x, 5); np.roll(R, 2, axis=1); np.flip(x); np.rot90(R)
np.transpose(R); R.T.ravel(); np.reshape(R, -1); np.swapaxes(D, 1, 2); np.moveaxis(D, 0, 2); np.pad(R, 2)
np.pad(R, 2, mode='edge'); np.pad(R, 2, mode='reflect'); np.pad(R, 2, mode='wrap'); np.pad(R, 2, mode='symmetric')
np.pad(x, 3, mode='linear_ramp'); np.pad(x, (2, 5), mode='edge'); np.diag(b); np.diagonal(A); np.diagflat(b)
np.tril(A); np.triu(A); x[k]; R[:, ::2]; x[::-1]; R[1:-1, 1:-1]; np.take(x, k); np.take(R, k[:5], axis=0)
np.take_along_axis(R, np.argsort(R, axis=1), axis=1); np.broadcast_to(x, (3, x.size)); np.meshgrid(b, b)[0]
np.vander(b[:8]); np.polyval(b[:8], x); np.polyadd(x, y); np.polymul(x[:99], y[:99]); np.polyint(x); np.polyder(x)
np.linspace(x[0], x[1], 1000); np.delete(x, 3); np.insert(x, 3, 1.0); np.fft.fftshift(x)
np.apply_along_axis(np.sum, 1, R); R[1:, 1:] - R[:-1, :-1]; (x[2:] - 2 * x[1:-1] + x[:-2]) * 0.5
R - R.mean(axis=1, keepdims=True); R / np.sqrt(np.sum(R ** 2, axis=1, keepdims=True))
"""

LINEAR_ALGEBRA = """
np.linalg.det(A); np.linalg.slogdet(A)[1]; np.linalg.inv(A); np.linalg.solve(A, b); np.linalg.solve(A, B)
np.linalg.cholesky(S); np.linalg.eigh(S)[0]; np.abs(np.linalg.eigh(S)[1]); np.linalg.eigvalsh(S); np.linalg.svd(A)[1]
np.abs(np.linalg.svd(A)[0]); np.linalg.svdvals(A); np.abs(np.linalg.qr(A)[0]); np.abs(np.linalg.qr(A)[1])
np.linalg.pinv(A); np.linalg.lstsq(A[:, :3], b, rcond=-1)[0]; np.linalg.matrix_power(A, 5); np.linalg.norm(A)
np.linalg.norm(A, 2); np.linalg.norm(A, 'nuc'); np.linalg.cond(A); np.linalg.multi_dot([A, B, A]); np.linalg.det(D)
np.linalg.slogdet(D)[1]; np.linalg.inv(D); np.linalg.solve(D, E[:, :, None])
np.linalg.eigvalsh(D @ np.swapaxes(D, 1, 2)); np.linalg.cholesky(D @ np.swapaxes(D, 1, 2))
np.linalg.det(D[:, :3, :3]); np.linalg.inv(D[:, :3, :3]); np.linalg.svd(D)[1]; np.linalg.det(D[:, :2, :2])
sla.expm(A); sla.expm(0.01 * A); sla.expm(D[:500]); sla.solve_triangular(L, b, lower=True)
sla.solve_triangular(L, B, lower=True, trans=1); sla.cho_solve(sla.cho_factor(S), b); sla.lu(A)[2]
sla.lu_solve(sla.lu_factor(A), b); sla.solve(S, b, assume_a='pos'); sla.block_diag(A, B); sla.toeplitz(b); sla.det(A)
sla.inv(A); sla.cholesky(S, lower=True); np.sum(np.linalg.solve(A, b) * np.linalg.solve(A.T, b))
np.real(np.linalg.eigvals(A).sum()); sla.solve_sylvester(A, B, S); np.abs(np.fft.fft(x)); np.fft.rfft(x)
np.fft.irfft(x + 0j); np.fft.fft(R, axis=1); np.fft.fft(R, axis=0); np.fft.fft2(R); np.fft.rfft2(R)
np.fft.ifft2(R + 1j * R); np.fft.rfft(R, axis=1); np.fft.fftn(D[:64]); np.real(np.fft.ifft(np.fft.fft(x) * 2))
np.fft.irfft2(np.fft.rfft2(R)); np.fft.hfft(x[:33]); np.fft.rfft(x[:1000]); signal.convolve(x, b[:32])
signal.fftconvolve(x, y); signal.convolve2d(R, A[:3, :3]); signal.correlate(x, b[:32], mode='valid')
signal.detrend(x)
"""

LOOPS = """
lax.scan(lambda c, t: (c * 0.9 + t, c), x[0], x[:5000])[1]
lax.scan(lambda c, t: (np.tanh(c + t), None), x[0], x[:5000])[0]
lax.scan(lambda c, t: (np.tanh(A[:9, :9] @ c + t), c), b[:9], np.zeros((300, 1), x.dtype) + b[:9])[1]
lax.fori_loop(0, 100, lambda i, c: c * 0.99 + np.sin(c) * 0.01, x); lax.cond(b[0] > 0, np.sin, np.cos, x)
lax.map(lambda t: np.sin(t) * t, x); lax.switch(2, [np.sin, np.cos, np.exp], x)
lax.associative_scan(lambda a, c: a * c, 1 + 0.001 * b); lax.scan(lambda c, t: (c, np.sin(t)), 0, x)[1]
"""

TEXTS = [
    text
    for group in (ELEMENTWISE, SPECIAL, ARRAYS, LINEAR_ALGEBRA, LOOPS)
    for line in group.strip().splitlines()
    for text in line.split("; ")
]

SIZES = {"small": (16, 8), "large": (30_000, 200)}
"""Elements of the vectors, and rows of the matrices."""

CONTENDERS = {"fnad jit": "fnad", "JAX jit": "jax"}


def arguments(length: int, n: int, dtype: str) -> dict[str, np.ndarray]:
    """Return the arguments of all texts: vectors in lower case, matrices and stacks of vectors or matrices in upper."""
    rng = np.random.default_rng(0)
    normal = rng.standard_normal
    a, count = normal((n, n)), length // 6 + 2
    given = {
        "x": normal(length), "y": normal(length), "p": rng.uniform(0.1, 3, length),
        "u": rng.uniform(0.05, 0.95, length), "g": rng.uniform(1.1, 4, length), "b": normal(n),
        "A": a / np.sqrt(n) + 2 * np.eye(n), "B": normal((n, n)),
        "S": a @ a.T / n + np.eye(n), "L": np.tril(a) / np.sqrt(n) + 2 * np.eye(n), "R": normal((2 * n, 2 * n - 3)),
        "X": normal((length, 3)), "V": normal((length, 3)), "D": normal((count, 4, 4)) + 2 * np.eye(4),
        "E": normal((count, 4)), "T": normal((length // 10 + 1, 10)),
    }  # fmt: skip
    fixed = {"m": rng.random(length) > 0.5, "k": rng.integers(length, size=length), "c": rng.integers(8, size=length)}
    return {name: array.astype(dtype) for name, array in given.items()} | fixed


def cases() -> Iterator[Case]:
    for size, (length, n) in SIZES.items():
        for dtype, tolerance in (("float64", 1e-7), ("float32", 2e-2)):
            given = arguments(length, n, dtype)
            for text in TEXTS:
                for kind, prepared in (("value", value), ("gradient", gradient)):
                    calls = [
                        Call(system, peer, partial(prepared, text, given), "process_time", 0.002)
                        for system, peer in CONTENDERS.items()
                    ]
                    yield Case(f"{text}, {size}, {dtype}, {kind}", calls, tolerance, "µs", rounds=9)


def value(text: str, given: dict[str, np.ndarray], system: Any) -> Thunk:
    """Return a call of `text`, compiled."""
    function, names = bound(text, system)
    return called(system, system.jit(function), [given[name] for name in names])


def gradient(text: str, given: dict[str, np.ndarray], system: Any) -> Thunk:
    """Return a call of the value and gradient of a weighted sum of `text`, in all its arguments of floats.

    Of results without a derivative it is a call of nothing.
    """
    function, names = bound(text, system)
    arrays = [given[name] for name in names]
    kinds = [array.dtype.kind for array in arrays]
    result = np.asarray(system.jit(function)(*arrays))
    if result.dtype.kind not in "fc":
        return lambda: ()
    rng, real = np.random.default_rng(1), np.abs(result).dtype
    weights = [rng.standard_normal(result.shape).astype(real) for _ in range(1 + (result.dtype.kind == "c"))]
    xp = bound("np", system)[0]()

    def total(*operands: Any) -> Any:
        y = function(*operands)
        parts = [xp.real(y), xp.imag(y)] if len(weights) == 2 else [y]
        return sum(xp.sum(part * weight) for part, weight in zip(parts, weights, strict=True))

    floats = tuple(index for index, kind in enumerate(kinds) if kind == "f")
    return called(system, system.jit(system.value_and_grad(total, floats)), arrays)


def called(system: Any, run: Callable[..., Any], arrays: list[np.ndarray]) -> Thunk:
    """Return a call that waits for its result."""
    if system.__name__ == "fnad":
        return lambda: run(*arrays)
    given = [system.numpy.asarray(array) for array in arrays]
    return lambda: system.block_until_ready(run(*given))


def bound(text: str, system: Any) -> tuple[Callable[..., Any], list[str]]:
    """Return `text` as a function of the arguments it names, and their names."""
    ours = system.__name__ == "fnad"
    modules = (
        {"np": "numpy", "nn": "fnad.nn", "lax": "fnad"}
        if ours
        else {"np": "jax.numpy", "nn": "jax.nn", "lax": "jax.lax"}
    )
    scipy = "scipy" if ours else "jax.scipy"
    modules |= {
        "special": f"{scipy}.special",
        "sla": f"{scipy}.linalg",
        "stats": f"{scipy}.stats",
        "signal": f"{scipy}.signal",
    }
    used = names_of(compile(text, "<operation>", "eval"))
    names = sorted(used & arguments(4, 4, "float64").keys())
    namespace: dict[str, Any] = {short: import_module(module) for short, module in modules.items() if short in used}
    source, file = f"def operation({', '.join(names)}):\n    return {text}\n", f"<operation {text}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), namespace)
    return namespace["operation"], names


def names_of(code: CodeType) -> set[str]:
    """Return the global names of an expression and of the functions in it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {*code.co_names, *(name for part in inner for name in names_of(part))}
