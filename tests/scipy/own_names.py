"""Calls of SciPy's functions by their own names: a function of arrays and the arrays, by the name of SciPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, special, stats
from scipy.spatial import distance


def both(z: Any) -> Any:
    """The real and the imaginary part."""
    return np.stack([np.real(z), np.imag(z)])


class Case(NamedTuple):
    """A function, its arguments, and the relative errors of its values and of the differences it is compared with."""

    function: Callable[..., Any]
    args: list[Any]
    rtol: float = 1e-12
    precision: float = 1e-9


def of(function: Callable[..., Any], *args: Any, **options: Any) -> Case:
    return Case(function, [np.asarray(x, dtype=float)[()] for x in args], **options)


X, Y = [0.3, 1.2, 2.1], [1.5, 0.4, 0.9]
SPD = [[2.0, 0.5, 0.1], [0.5, 3.0, 0.3], [0.1, 0.3, 1.5]]
POINTS = [[0.3, 1.2, 0.4], [0.7, -0.3, 1.6], [1.1, 0.9, -0.8], [0.2, 0.5, 0.6]]
OTHERS = [[1.3, 0.1, 0.2], [-0.5, 0.8, 2.1]]
UNLIKE = [[1.0, 0.4, -0.3], [0.9, 2.5, 0.2], [-0.6, 0.1, 4.0]]
SPARSE = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
SOLVED = sparse.csc_array([[2.0, 0.0, 0.5], [0.3, 1.5, 0.0], [0.0, -0.4, 1.0]])
KNOTS, VALUES = np.array([0.0, 0.7, 1.1, 2.0, 2.6, 4.0]), [0.1, 1.2, 0.8, 1.9, 0.4, 0.7]
BETWEEN = [-0.3, 0.2, 0.75, 1.5, 3.4, 4.4]
SPLINE, LINEAR = interpolate.CubicSpline(KNOTS, VALUES), interpolate.interp1d(KNOTS, VALUES)
TIMES = np.linspace(0.0, 1.0, 6)
ROUGH: dict[str, float] = {"rtol": 1e-9, "precision": 1e-6}
FLAT: dict[str, float] = {"rtol": 1e-6, "precision": 1e-4}
STEPS: dict[str, float] = {"rtol": 1e-9, "atol": 1e-9}
FINE: dict[str, float] = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
SPREAD = [0.5, 0.2, 0.7, 0.3, 0.4, 0.6]


def decay(t: Any, height: Any, rate: Any) -> Any:
    """A curve to fit."""
    return height * np.exp(-rate * t)


def decay_slopes(t: Any, height: Any, rate: Any) -> Any:
    """Its derivatives with respect to the parameters."""
    t = np.asarray(t)
    return np.stack([np.exp(-rate * t), -t * height * np.exp(-rate * t)], axis=1)


BY_SLOPES: dict[str, Any] = {"jac": decay_slopes, **FINE}


def valley(x: Any, a: Any) -> Any:
    """A function of two variables with a minimum."""
    return (x[0] - a) ** 2 + np.exp(x[1] - x[0]) - x[1] * a


def valley_slopes(x: Any, a: Any) -> Any:
    """Its gradient."""
    slope = np.exp(x[1] - x[0])
    return np.array([2 * (x[0] - a) - slope, slope - a])


TCK = interpolate.splrep(KNOTS, VALUES)
GRID = (KNOTS[:4], np.array([1.5, 0.5, -1.0]))
CORNERS = [[0.3, 1.2, -0.4], [0.9, 0.1, 0.7], [-0.2, 0.6, 1.4], [0.8, -1.1, 0.5]]
PLACES = [[0.2, 0.1], [1.7, -0.4], [0.95, 1.2], [0.73, 0.49]]
WHERE = [[0.2, 1.7, 2.9, -0.3, 3.6, 8.7, -7.2], [1.8, -0.4, 0.6, 1.3, 0.7, 2.6, 0.3]]
SMOOTH = interpolate.UnivariateSpline(np.linspace(0.0, 4.0, 20), np.sin(np.arange(20.0)), s=0.5)
BOARD = (KNOTS, np.array([-1.0, 0.1, 0.9, 1.6, 2.5]))
FIELD = np.sin(np.add.outer(np.arange(6.0), np.arange(5.0) ** 2))
PLACE = [[-0.2, 0.3, 1.4, 3.9], [0.2, -1.4, 1.1, 2.7]]
SURFACE = interpolate.RectBivariateSpline(*BOARD, FIELD)
NODES = np.array([[0, 0.1], [1.1, -0.2], [2, 0.1], [0.2, 1], [1, 1.3], [2.1, 0.9], [0.1, 2.2], [1.3, 2]])
HEIGHTS = np.sin(np.arange(8.0) ** 2)
MANY = np.sin(np.arange(60.0) ** 2)
TURN = [[0.9, 0.2], [-0.3, 1.1]]
AROUND = [[-0.2, 0.1], [1.7, -1.4], [2.9, 1.2], [0.73, 1.6]]
KINDS = (sparse.csr_matrix, sparse.csc_array, sparse.coo_array, sparse.dia_array, sparse.lil_array)
LONG, OTHER = [0.1, 0.4, -0.3, 0.8, 1.1], [0.7, -0.2, 1.4, 0.3, 0.5]
SIGNAL = [[math.sin(k * k) + 0.1 * k for k in range(20)], [math.cos(k * k / 3) for k in range(20)]]
SIGNAL_WEIGHTS = np.linspace(0.5, 2.0, 20)
SECTIONS = signal.butter(4, 0.2, output="sos")
ONE_SAMPLE = (
    *(stats.tmean, stats.tvar, stats.tstd, stats.tsem, stats.tmin, stats.tmax, stats.kstat, stats.kstatvar),
    *(stats.circmean, stats.circvar, stats.circstd, stats.differential_entropy, stats.lmoment),
)

CASES: dict[str, list[Case]] = {
    "special": [
        of(lambda x, b: special.logsumexp(x, b=b), X, Y),
        of(lambda x: special.logsumexp(x, axis=0, keepdims=True), SPD),
        of(lambda x: special.softmax(x, axis=1), SPD),
        of(lambda x: special.log_softmax(x), X),
        of(lambda x: special.polygamma(2, x), X),
        of(lambda x: special.multigammaln(x[2] + 3, 2), X),
        of(lambda x: special.spherical_jn(1, x), X),
        of(lambda x: special.comb(5, x), X),
    ],
    "linalg": [
        of(lambda a: linalg.cholesky(a @ a.T, lower=True), SPD),
        of(lambda a, b: linalg.solve(a, b), SPD, X),
        of(lambda a, b: linalg.cho_solve(linalg.cho_factor(a @ a.T), b), SPD, X),
        of(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), SPD, X),
        of(lambda a, b: linalg.solve_triangular(a, b, lower=True), SPD, X),
        of(lambda a: linalg.expm(a), SPD),
        of(lambda a: linalg.inv(a), SPD),
        of(lambda a: linalg.det(a), SPD),
        of(lambda a: linalg.qr(a, mode="economic")[1], SPD),
        of(lambda a: linalg.svd(a)[1], SPD),
        of(lambda c: linalg.toeplitz(c), X),
        of(lambda a, b: linalg.block_diag(a, b), SPD, X),
        of(lambda a: linalg.norm(a), SPD),
    ],
    "linalg, eigenvalues": [
        of(lambda a: np.vstack([linalg.eigh(a)[0], np.abs(linalg.eigh(a)[1])]), SPD),
        of(lambda a: np.abs(linalg.eigh(a @ a, lower=False, subset_by_index=[0, 1])[1]), SPD),
        *(
            of(lambda a, b, kind=kind: np.abs(linalg.eigh(a + a.T, b @ b, type=kind)[1]), UNLIKE, SPD)
            for kind in (1, 2, 3)
        ),
        of(lambda a, b: np.abs(linalg.eigh(a, b @ b, lower=False)[1]), UNLIKE, SPD),
        of(lambda a, b: linalg.eigh(a, b, eigvals_only=True, type=2), SPD, SPD),
        of(lambda a, b: linalg.eigvalsh(a, b @ b, type=3, subset_by_index=(1, 2)), SPD, SPD),
        of(lambda a: np.sort(linalg.eig(a)[0].real), UNLIKE),
        of(lambda a: np.abs(linalg.eig(a)[1])[:, :1] ** 2 @ np.ones((1, 2)), UNLIKE),
        of(lambda a: linalg.pinvh(a @ a.T), SPD),
        *(of(lambda a, s=side: np.stack(linalg.polar(a, s)), UNLIKE) for side in ("left", "right")),
        of(lambda a: linalg.orthogonal_procrustes(a, SPD)[0], UNLIKE),
        of(lambda a, b: np.concatenate(spatial.procrustes(a, b)[:2]), UNLIKE, SPD),
        of(lambda d, e: np.abs(linalg.eigh_tridiagonal(d, e[:2])[1]), X, Y),
        of(lambda d, e: linalg.eigvalsh_tridiagonal(d, e[:2]), X, Y),
    ],
    "linalg, functions and structures": [
        *(
            of(lambda a, f=f: f(a / 3), UNLIKE)
            for f in (linalg.coshm, linalg.sinhm, linalg.tanhm, linalg.cosm, linalg.sinm, linalg.tanm)
        ),
        of(lambda a: np.real(linalg.sinm(a / 3 * (1 + 0.5j))), UNLIKE),
        of(lambda c, b: linalg.solve_toeplitz(c, b), [4.0, 1.0, 0.3], X),
        of(lambda c, r, x: linalg.solve_toeplitz((c, r), x), [4.0, 1.0, 0.3], [4.0, 0.2, 0.7], SPD),
        of(lambda c, r, x: linalg.matmul_toeplitz((c, r), x), [4.0, 1.0, 0.3], [4.0, 0.2, 0.7], X),
        of(lambda c, b: linalg.solve_circulant(c, b), [4.0, 1.0, 0.3], X),
        of(lambda d, b: linalg.solveh_banded(d, b), [[0.0, 0.0, 0.2], [0.0, 0.5, 0.3], [4.0, 3.0, 2.0]], X),
        of(lambda d, b: linalg.solveh_banded(d, b, lower=True), [[4.0, 3.0, 2.0], [0.5, 0.3, 0.0]], SPD),
        of(lambda a, b: linalg.khatri_rao(a, b), SPD, [X]),
        of(lambda c: linalg.companion(c), X),
        of(lambda c: linalg.convolution_matrix(c, 4, mode="same"), X),
        of(lambda c: linalg.fiedler(c), X),
    ],
    "fft": [
        *(
            of(lambda x, f=f, n=n, norm=norm: both(f(x[0] + 1j * x[1], n, norm=norm)), [LONG, LONG])
            for f in (fft.fft, fft.ifft, fft.hfft, fft.irfft)
            for n, norm in ((None, "forward"), (4, None))
        ),
        *(of(lambda x, f=f: both(f(x, 7, 0, "ortho")), SPD) for f in (fft.rfft, fft.ihfft)),
        *(
            of(lambda x, f=f: both(f(x, (4, 2), norm="forward", workers=1)), SPD)
            for f in (fft.fft2, fft.ifft2, fft.rfft2, fft.irfft2, fft.hfft2, fft.ihfft2)
        ),
        *(
            of(lambda x, f=f: both(f(x, (4, 2))), SPD)
            for f in (fft.fftn, fft.ifftn, fft.rfftn, fft.irfftn, fft.hfftn, fft.ihfftn)
        ),
        of(lambda x: both(fft.fftn(x, 5)), SPD),
        of(lambda x: fft.ihfftn(fft.rfftn(x, axes=0).real, axes=(0,)).real, SPD),
        of(lambda x: fft.fftshift(fft.ifftshift(x)), LONG),
        of(lambda x: fft.ifht(fft.fht(x, 0.1, 0.5), 0.1, 0.5, bias=0.2), LONG),
    ],
    "fft, cosines and sines": [
        *(
            of(lambda x, f=f, t=t, norm=norm: f(x, t, norm=norm), LONG)
            for f in (fft.dct, fft.idct, fft.dst, fft.idst)
            for t in (1, 2, 3, 4)
            for norm in (None, "ortho")
        ),
        *(
            of(lambda x, f=f, t=t, norm=norm: f(x, t, norm=norm, orthogonalize=norm is not None), LONG)
            for f, t in ((fft.dct, 1), (fft.idct, 2), (fft.idst, 3))
            for norm in (None, "forward")
        ),
        *(of(lambda x, f=f: f(x, 1, 4, 0), SPD) for f in (fft.dct, fft.idst)),
        *(of(lambda x, f=f: f(x, 3, (4, -1)), SPD) for f in (fft.dctn, fft.idctn, fft.dstn, fft.idstn)),
        of(lambda x: fft.dctn(x, axes=1, norm="ortho"), SPD),
        of(lambda x: both(fft.dct(x + 2j * x**2)), LONG),
        of(lambda x: fft.dst(x[:1], 2), LONG),
    ],
    "signal": [
        of(lambda x, y: signal.convolve(x, y), X, Y),
        of(lambda x, y: signal.correlate(x, y, mode="same"), X, Y),
        of(lambda x, y: signal.convolve2d(x, y, "same", "symm"), SPD, [[0.5, -1.0], [2.0, 0.3]]),
        of(lambda x, y: signal.fftconvolve(x, y), X, Y),
    ],
    "signal, recursive": [
        of(lambda b, a, x: signal.lfilter(b, a, x), [0.3, 0.1, 0.2], [1.2, -0.5, 0.1], LONG),
        of(lambda b, x: signal.lfilter(b, 1.5, x, axis=0), [0.3, 0.1], SPD),
        of(lambda a, x, z: np.concatenate(signal.lfilter([0.3, 0.1, 0.4], a, x, zi=z)), X, LONG, [0.1, 0.2]),
        of(lambda x, z: np.concatenate(signal.lfilter([0.3], [1.0, 0.5, 0.1, 0.2], x[:2], zi=z)), LONG, X),
        of(lambda x: signal.lfilter([1.0], [1.0, -1.0], x, axis=-1), SPD),
        of(lambda x: signal.sosfilt(signal.butter(4, 0.2, output="sos"), x), LONG),
        of(lambda b: signal.lfilter_zi(b, [1.0, -0.4, 0.1]), X),
        of(lambda x: signal.filtfilt(*signal.butter(2, 0.3), x, padlen=3), LONG),
        of(lambda x: signal.filtfilt(*signal.butter(2, 0.3), x, method="gust"), LONG),
    ],
    "signal, filters": [
        of(lambda x: signal.detrend(x), LONG),
        of(lambda x: signal.detrend(x, bp=[1, 4]), LONG),
        of(lambda x: signal.detrend(x, axis=0, type="l", bp=2), SPD),
        of(lambda x: signal.detrend(x, axis=0, type="constant", bp=2), POINTS),
        of(lambda x: signal.savgol_filter(x, 3, 1), LONG),
        of(lambda x: signal.savgol_filter(x, 5, 2, deriv=1, mode="mirror", axis=0), SIGNAL),
        of(lambda x: signal.medfilt(x, 3), LONG),
        of(lambda x: signal.order_filter(x, np.ones(3), 1), LONG),
        of(lambda x: signal.wiener(x, 3), LONG),
        of(
            lambda x, z: np.concatenate([np.ravel(y) for y in signal.sosfilt(SECTIONS, x, zi=z)]),
            LONG,
            [[0.1, 0.2], [0.3, -0.1]],
        ),
        of(lambda x: signal.sosfiltfilt(SECTIONS, x), SIGNAL[0]),
        *(of(lambda h, x, n=n: signal.upfirdn(h, x, *n), X, LONG) for n in ((1, 1), (2, 1), (1, 3), (3, 2))),
        of(lambda x: signal.upfirdn([1.0, 0.5, 0.2, 0.1], x, 3, 2, axis=0), POINTS),
        of(lambda x: signal.resample(x, 8), LONG),
        of(lambda x: signal.resample(x, 3), LONG),
        of(lambda x: signal.resample_poly(x, 2, 3), SIGNAL[0]),
        of(lambda x, h: signal.deconvolve(x, h)[0], LONG, X),
        of(lambda x: signal.lsim(([1.0], [1.0, 0.5]), x, np.arange(5.0))[1], LONG),
        of(lambda x: both(signal.hilbert(x)), LONG),
        of(lambda x: both(signal.hilbert2(x)), UNLIKE),
        of(lambda x: signal.envelope(x), LONG),
    ],
    "signal, spectra": [
        of(lambda x: signal.periodogram(x, window="hann", detrend="linear")[1], SIGNAL[0]),
        *(of(lambda x, a=a: signal.welch(x, nperseg=8, average=a)[1], SIGNAL[0]) for a in ("mean", "median")),
        of(lambda x, y: both(signal.csd(x, y, nperseg=8)[1]), *SIGNAL),
        of(lambda x, y: signal.coherence(x, y, nperseg=8)[1], *SIGNAL),
        of(lambda x: signal.spectrogram(x, nperseg=8)[2], SIGNAL[0]),
        of(lambda x: both(signal.stft(x, nperseg=8)[2]), SIGNAL),
        of(lambda x: signal.istft(signal.stft(x, nperseg=8)[2] ** 2, nperseg=8)[1], SIGNAL[0]),
        of(lambda x: signal.lombscargle(np.arange(5.0), x, [0.5, 1.0]), LONG),
        of(lambda x: signal.vectorstrength(x, 1.3)[0], LONG),
        of(lambda b, a: both(signal.freqz(b, a, worN=5)[1]), LONG, X),
        of(lambda b, a: both(signal.freqs(b, a, worN=[0.1, 1.0])[1]), X, Y),
        of(lambda b: signal.group_delay((b, 1.0), w=5)[1], LONG),
        of(lambda t: signal.chirp(t, 1.0, 2.0, 3.0) + signal.gausspulse(t / 9, 5) + signal.sawtooth(t, 0.3), X),
        of(lambda z, k: signal.zpk2tf(z, [1.0], k)[0], X, 2.0),
        of(lambda b: signal.tf2ss(b, Y)[2], X),
        of(lambda a: signal.cont2discrete((a, SPARSE[:, 1:2], SPARSE[:1], np.zeros((1, 1))), 0.1)[0], SPD),
    ],
    "statistics": [
        *(of(f, LONG) for f in ONE_SAMPLE),
        *(
            of(lambda x, f=f: np.stack(f(x)[:]), SIGNAL[0])
            for f in (stats.skewtest, stats.kurtosistest, stats.normaltest, stats.jarque_bera)
        ),
        of(lambda a: np.stack(stats.ttest_1samp(a, 0.3)[:]), LONG),
        of(lambda m: stats.ttest_1samp(LONG, m, alternative="less").pvalue, 0.3),
        *(of(lambda a, b, e=equal: np.stack(stats.ttest_ind(a, b, equal_var=e)[:]), LONG, OTHER) for equal in (0, 1)),
        of(lambda a, b: stats.ttest_ind(a, b, axis=1, keepdims=True).statistic, UNLIKE, SPD),
        *(
            of(lambda a, b, f=f: np.stack(f(a, b)[:]), LONG, OTHER)
            for f in (stats.ttest_rel, stats.f_oneway, stats.bartlett, stats.levene)
        ),
        of(lambda a, b: stats.wasserstein_distance(a, b) + stats.energy_distance(a, b), LONG, OTHER),
        of(lambda a, b: stats.alexandergovern(a, b).statistic, LONG, OTHER),
        of(lambda a, b: np.stack(stats.obrientransform(a, b)), LONG, OTHER),
        of(lambda a: np.stack(stats.chisquare(a, np.sum(a) * np.array([0.2, 0.3, 0.5]))[:]), X),
        of(lambda a: np.stack(stats.power_divergence(a, np.sum(a) / 3, lambda_=0.5)[:]), X),
        *(
            of(lambda p, m=method: np.stack(stats.combine_pvalues(p, m)[:]), [0.1, 0.3, 0.7])
            for method in ("fisher", "stouffer")
        ),
        of(lambda x, a: stats.boxcox(x, a), X, 0.4),
        of(lambda x, a: stats.yeojohnson(x, a), LONG, 0.4),
        of(lambda a, x: stats.yeojohnson_llf(a, x), 0.4, LONG),
        of(lambda a: stats.directional_stats(a).mean_direction, POINTS),
        of(lambda a: stats.expectile(a, 0.3), LONG),
        of(lambda a: stats.quantile(a, 0.3), LONG),
        of(lambda a: stats.trim_mean(a, 0.2), LONG),
        of(lambda a: stats.trimboth(a, 0.2), LONG),
        of(lambda a: stats.sigmaclip(a)[0], LONG),
    ],
    "spatial.distance": [
        *(
            of(lambda a, b, m=metric: distance.cdist(a, b, m), POINTS, OTHERS)
            for metric in ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation")
        ),
        *(of(lambda a, m=metric: distance.pdist(a, m), POINTS) for metric in ("euclidean", "canberra", "braycurtis")),
        of(lambda a, b: distance.cdist(a, b, "minkowski", p=3, w=[1.0, 2.0, 0.5]), POINTS, OTHERS),
        of(lambda a, b, v: distance.cdist(a, b, "mahalanobis", VI=v @ v.T), POINTS, OTHERS, SPD),
        of(lambda a, b, v: distance.cdist(a, b, "seuclidean", V=v), POINTS, OTHERS, Y),
        of(lambda a: distance.squareform(distance.pdist(a)), POINTS),
        of(lambda a: distance.squareform(distance.squareform(distance.pdist(a))), POINTS),
        *(
            of(lambda a, m=metric: getattr(distance, m)(a[0], a[1]), POINTS)
            for metric in ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "canberra")
        ),
        of(lambda a: distance.minkowski(a[0], a[1], 3), POINTS),
        of(lambda a: distance.braycurtis(a[0], a[1]), POINTS),
        of(lambda a: distance.mahalanobis(a[0], a[1], SPD), POINTS),
        of(lambda a: distance.seuclidean(a[0], a[1], Y), POINTS),
    ],
    "interpolate, splines of FITPACK": [
        *(
            of(lambda y, x, k=k: interpolate.InterpolatedUnivariateSpline(KNOTS, y, k=k)(x), VALUES, BETWEEN)
            for k in (1, 2, 3, 5)
        ),
        of(lambda k, y: interpolate.UnivariateSpline(k, y, s=0)(BETWEEN, 1), KNOTS, VALUES),
        of(lambda y, x: interpolate.UnivariateSpline(KNOTS, y, s=0, ext="const")(x), VALUES, BETWEEN),
        of(lambda x: SMOOTH(x) + SMOOTH(x, 2) + SMOOTH.derivative()(x), BETWEEN),
        of(lambda a, b: SMOOTH.integral(a, b), -0.3, 3.1),
        of(lambda x: np.concatenate([SMOOTH.derivatives(x[0]), *SMOOTH.derivatives(x)]), [0.3, 1.2, 2.2]),
        of(lambda y: interpolate.UnivariateSpline(KNOTS, y, s=0).integral(3.1, 0.2), VALUES),
        of(lambda y, x: interpolate.UnivariateSpline(KNOTS, y, s=0).derivative(2)(x), VALUES, BETWEEN),
        of(lambda y, x: interpolate.UnivariateSpline(KNOTS, y, s=0).antiderivative()(x), VALUES, BETWEEN),
        of(
            lambda y, w, x: interpolate.LSQUnivariateSpline(TIMES, y, [0.4], w, k=2)(x),
            VALUES,
            SPREAD,
            X,
        ),
        *(
            of(
                lambda z, x, y, d=d: interpolate.RectBivariateSpline(*BOARD, z).ev(x, y, *d),
                FIELD,
                [*PLACE[0]],
                PLACE[1],
            )
            for d in ((0, 0), (1, 0), (1, 2))
        ),
        of(lambda z, x, y: interpolate.RectBivariateSpline(*BOARD, z, kx=2, ky=1)(x, y), FIELD, PLACE[0], X),
        of(lambda x, y: SURFACE(x, y), PLACE[0], X),
        of(lambda x, y: SURFACE(x, y, dx=1, grid=False), *PLACE),
    ],
    "interpolate, Akima and polynomials": [
        *(
            of(lambda k, y, x, m=m: interpolate.Akima1DInterpolator(k, y, method=m)(x), KNOTS, VALUES, BETWEEN[1:5])
            for m in ("akima", "makima")
        ),
        of(lambda y: interpolate.Akima1DInterpolator(KNOTS, np.stack([y, y**2]), axis=1)(BETWEEN[1:5], 1), VALUES),
        of(lambda y, x: interpolate.Akima1DInterpolator(KNOTS[:2], y[:2], extrapolate=True)(x), VALUES, BETWEEN),
        *(
            of(lambda y, x, f=f: f(KNOTS, y)(x), VALUES, [*BETWEEN, 1.1], precision=1e-8)
            for f in (interpolate.BarycentricInterpolator, interpolate.KroghInterpolator)
        ),
        of(lambda x: interpolate.BarycentricInterpolator(KNOTS, np.stack([VALUES, KNOTS]), axis=1)(x), X),
        of(lambda y: interpolate.KroghInterpolator([0, 0, 1, 2, 2], y)(X), LONG),
    ],
    "density estimates": [
        of(lambda d, x: stats.gaussian_kde(d)(x), LONG, X),
        of(lambda d, x: stats.gaussian_kde(d, "silverman").logpdf(x), LONG, X),
        of(lambda d, b, x: stats.gaussian_kde(d, b).pdf(x), LONG, 0.4, X),
        of(lambda d, w, x: stats.gaussian_kde(d, 0.7, w).logpdf(x), LONG, SPREAD[:5], X),
        of(lambda d, w, x: stats.gaussian_kde(d, lambda e: e.neff**-0.2, w)(x), SIGNAL, SIGNAL_WEIGHTS, POINTS[0][:2]),
        of(lambda x: stats.gaussian_kde(SIGNAL)(x), UNLIKE[:2]),
        of(lambda x: stats.gaussian_kde(LONG, 0.3, SPREAD[:5]).logpdf(x), X),
        of(lambda d, a, b: stats.gaussian_kde(d).integrate_box_1d(a, b), LONG, -0.3, 0.9),
        of(lambda b: stats.gaussian_kde(LONG).integrate_box_1d(-np.inf, b), 0.9),
        of(lambda d, m: stats.gaussian_kde(d).integrate_gaussian(m, [[1.0, 0.2], [0.2, 0.7]]), SIGNAL, X[:2]),
        of(lambda d, e: stats.gaussian_kde(d).integrate_kde(stats.gaussian_kde(e)), LONG, X),
        of(lambda d, x: stats.gaussian_kde(d).marginal([1])(x), SIGNAL, X),
    ],
    "ndimage, between elements": [
        *(
            of(lambda x, c, o=o, m=mode: ndimage.map_coordinates(x, c, order=o, mode=m, cval=0.7), CORNERS, WHERE)
            for o, mode in (
                *((0, "mirror"), (1, "constant"), (1, "nearest"), (1, "reflect"), (1, "wrap"), (1, "grid-constant")),
                *((2, "mirror"), (2, "grid-wrap"), (3, "constant"), (3, "nearest"), (3, "grid-constant"), (4, "wrap")),
                *((4, "reflect"), (5, "grid-mirror"), (5, "grid-wrap")),
            )
        ),
        of(lambda c: ndimage.map_coordinates(CORNERS, c, mode="mirror"), WHERE),
        of(lambda x, c: ndimage.map_coordinates(x, c, prefilter=False, mode="mirror"), CORNERS, WHERE),
        of(lambda x, c: both(ndimage.map_coordinates(x + 1j * x**2, c, mode="nearest", cval=2j)), CORNERS, WHERE),
        of(
            lambda x, c: ndimage.map_coordinates(x, [c], mode="reflect"), np.sin(np.arange(60.0) ** 2), 29 * np.array(X)
        ),
        of(lambda x: ndimage.spline_filter(x, 4, mode="grid-wrap"), SPD),
        of(lambda x: ndimage.spline_filter1d(x, 5), MANY),
        of(lambda x, s: ndimage.shift(x, s, mode="reflect"), CORNERS, [0.4, -1.3]),
        of(lambda x, s: ndimage.shift(x, s, order=1, cval=1.0), CORNERS, 0.4),
        of(lambda x: ndimage.zoom(x, (1.7, 2.2), mode="nearest"), SPD),
        of(lambda x: ndimage.zoom(x, 1.7, order=1, mode="grid-wrap", grid_mode=True), SPD),
        of(lambda x, a, b: ndimage.affine_transform(x, a, b, mode="mirror"), CORNERS, TURN, [0.13, 0.47]),
        of(lambda x, a: ndimage.affine_transform(x, a, 0.35, (3, 2), order=1, mode="wrap"), CORNERS, [0.8, 0.7]),
        of(lambda x, a: ndimage.affine_transform(x, np.vstack([a, [0, 0, 1]])), CORNERS, [[0.93, 0.2, 0.1], X]),
        of(lambda x, t: ndimage.rotate(x, t, reshape=False), CORNERS, 31.0),
        of(lambda x: ndimage.rotate(np.stack([x, x**2]), 31.0, axes=(2, 1), order=1, mode="nearest"), CORNERS),
    ],
    "ndimage, by rank": [
        *(
            of(lambda x, m=mode: ndimage.rank_filter(x, 1, 4, mode=m, cval=0.15), LONG)
            for mode in ("reflect", "nearest", "mirror", "wrap", "constant")
        ),
        of(lambda x: ndimage.median_filter(x, 3), LONG),
        of(lambda x: ndimage.median_filter(x, (2, 3), mode="nearest"), POINTS),
        of(lambda x: ndimage.median_filter(x, footprint=[[0, 1, 0], [1, 1, 1]], origin=(0, 1)), POINTS),
        of(lambda x: ndimage.rank_filter(x, -2, 3, origin=-1), LONG),
        of(lambda x: ndimage.percentile_filter(x, 30, 3), LONG),
        of(lambda x: ndimage.percentile_filter(x, -20, 5, mode="wrap"), POINTS),
        of(lambda x: ndimage.minimum_filter(x, (1, 2), mode=("wrap", "mirror")), POINTS),
        of(lambda x, c: ndimage.maximum_filter(x, 3, mode="constant", cval=c), POINTS, 0.85),
        of(lambda x: ndimage.minimum_filter1d(x, 3, axis=0, origin=1), POINTS),
        of(lambda x: ndimage.maximum_filter1d(x, 2, mode="nearest"), POINTS),
        of(lambda x: ndimage.minimum_filter(x, 2, axes=1), POINTS),
        of(lambda x, s: ndimage.grey_erosion(x, structure=s), POINTS, UNLIKE),
        of(lambda x, s: ndimage.grey_dilation(x, structure=s[:2]), POINTS, UNLIKE),
    ],
    "ndimage": [
        *(
            of(lambda x, w, m=mode: ndimage.correlate1d(x, w, mode=m, cval=0.5), LONG, [1.0, 2.0, 0.5, 0.3])
            for mode in (
                "reflect",
                "nearest",
                "mirror",
                "wrap",
                "constant",
                "grid-wrap",
                "grid-mirror",
                "grid-constant",
            )
        ),
        of(lambda x, w: ndimage.convolve1d(x, w, axis=0, origin=1), SPD, [1.0, 2.0, 0.5, 0.3]),
        of(lambda x, w: ndimage.convolve1d(x, w, mode="mirror"), LONG[:2], X),
        of(lambda x, w: ndimage.convolve(x, w, mode="constant", cval=1.0), SPD, [[1.0, 2.0], [0.5, 0.3]]),
        of(lambda x, w: ndimage.correlate(x, w, origin=[0, -1]), SPD, [[1.0, 2.0], [0.5, 0.3]]),
        of(lambda x, w: ndimage.correlate(x, w, axes=1), SPD, [1.0, 2.0, 0.5]),
        of(lambda x, w: both(ndimage.convolve(x, w * (1 + 2j))), SPD, [[1.0, 2.0], [0.5, 0.3]]),
        of(lambda x: ndimage.gaussian_filter(x, 0.8), SPD),
        of(lambda x: ndimage.gaussian_filter(x, [0.8, 0.3], order=[0, 1], mode="nearest"), SPD),
        of(lambda x: ndimage.gaussian_filter1d(x, 0.8, order=1), LONG),
        of(lambda x: ndimage.uniform_filter(x, 3), SPD),
        of(lambda x: ndimage.uniform_filter1d(x, 4, origin=-1), LONG),
        of(lambda x: ndimage.sobel(x) + ndimage.prewitt(x, axis=0), SPD),
        of(lambda x: ndimage.laplace(x) + ndimage.gaussian_laplace(x, 0.6), SPD),
        of(lambda x: ndimage.gaussian_gradient_magnitude(x, 0.6), UNLIKE),
        of(lambda x: ndimage.generic_gradient_magnitude(x, ndimage.sobel), UNLIKE),
        of(lambda x: ndimage.generic_laplace(x, ndimage.prewitt), UNLIKE),
    ],
    "sparse": [
        *(
            of(lambda x, a=a: np.concatenate([a @ x, (a @ np.outer(x, x)).ravel(), x @ a, a.T.dot(x)]), X)
            for a in [kind(SPARSE) for kind in KINDS]
        ),
        of(lambda x: sparse.csr_matrix(SPARSE) * x, X),
        of(lambda x: np.outer(X, x) @ sparse.csr_array(SPARSE), X),
    ],
    "interpolate on grids": [
        *(
            of(lambda v, x, m=m: interpolate.RegularGridInterpolator(GRID, v, m)(x), CORNERS, PLACES)
            for m in ("linear", "nearest")
        ),
        *(
            of(lambda v, x, f=f: interpolate.RegularGridInterpolator(GRID, v, "linear", False, f)(x), CORNERS, AROUND)
            for f in (0.3, None)
        ),
        of(interpolate.RegularGridInterpolator(GRID, CORNERS), PLACES),
        of(lambda k, v: interpolate.RegularGridInterpolator((k, GRID[1]), v)(PLACES), KNOTS[:4], CORNERS),
        of(
            lambda v, x: interpolate.interpn(GRID, np.stack([v, v**2], 2), (x, np.array([[0.1], [0.9]]))),
            CORNERS,
            VALUES[:3],
        ),
        of(lambda v, x: interpolate.interpn((KNOTS,), v, x, "nearest"), VALUES, X),
    ],
    "interpolate, radial": [
        *(
            of(lambda y, d, x, k=k: interpolate.RBFInterpolator(y, d, kernel=k, epsilon=0.7)(x), NODES, HEIGHTS, PLACES)
            for k in ("linear", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic")
        ),
        of(lambda y, d, x: interpolate.RBFInterpolator(y, d)(x), NODES, HEIGHTS, PLACES),
        of(
            lambda s, e, x: interpolate.RBFInterpolator(NODES, HEIGHTS, None, s, "gaussian", e)(x),
            HEIGHTS**2 + 0.1,
            0.7,
            PLACES,
        ),
        of(lambda d, x: interpolate.RBFInterpolator(NODES, np.stack([d, d**2], 1), degree=2)(x), HEIGHTS, PLACES),
        of(lambda x: both(interpolate.RBFInterpolator(NODES, HEIGHTS * (1 + 2j), smoothing=0.1)(x)), PLACES),
        of(lambda x: interpolate.RBFInterpolator(NODES, HEIGHTS, kernel="quintic")(x), NODES[:2]),
    ],
    "sparse, solved": [
        of(lambda b: sparse.linalg.spsolve(SOLVED, b), X),
        of(lambda b: sparse.linalg.spsolve(SOLVED.tocsr(), b) @ sparse.linalg.spsolve(SOLVED.T, b[:, :1]), SPD),
        of(lambda b: both(sparse.linalg.spsolve(SOLVED * (1 + 0.5j), b * 1j)), X),
        *(
            of(lambda b, f=find: f(SOLVED, b, rtol=1e-14)[0], X, rtol=1e-10)
            for find in (sparse.linalg.bicg, sparse.linalg.bicgstab, sparse.linalg.cgs, sparse.linalg.gmres)
        ),
        of(lambda b: sparse.linalg.cg(np.array(SPD), b, rtol=1e-14, atol=1e-14, maxiter=9)[0], X, rtol=1e-10),
    ],
    "interpolate between traced places": [
        *(
            of(
                lambda k, v, x, e=ends: interpolate.CubicSpline(k, v, bc_type=e)(x),
                KNOTS,
                VALUES,
                BETWEEN,
                precision=1e-6,
            )
            for ends in ("not-a-knot", "natural", "clamped", ((1, 0.3), (2, 0.1)))
        ),
        of(
            lambda k, v: interpolate.CubicSpline(k, np.concatenate([v, v[:1]]), bc_type="periodic")(BETWEEN),
            KNOTS,
            VALUES[:-1],
        ),
        of(lambda k: interpolate.CubicSpline(k[:3], VALUES[:3]).integrate(0.2, 1.0), KNOTS),
        of(lambda k: interpolate.CubicSpline(k, np.array([VALUES, LONG + X[:1]]).T).derivative()(BETWEEN), KNOTS),
        of(lambda k, v: interpolate.CubicHermiteSpline(k, v, v**2)(BETWEEN), KNOTS, VALUES),
        of(lambda k, v: interpolate.PchipInterpolator(k, v, extrapolate=False)(BETWEEN[1:5]), KNOTS, VALUES),
        of(lambda k, v: interpolate.PPoly(np.stack([v[:5], v[1:]]), k)(BETWEEN), KNOTS, VALUES),
        *(
            of(lambda k, v, o=kind: interpolate.interp1d(k, v, o)(BETWEEN[1:5]), KNOTS, VALUES)
            for kind in ("linear", "cubic", "quadratic", "zero", "nearest", "nearest-up", "previous", "next")
        ),
        of(
            lambda k, v: interpolate.interp1d(k[::-1], v[::-1], fill_value="extrapolate")(BETWEEN),
            KNOTS,
            VALUES,
        ),
        *(
            of(lambda k, v, o=k: interpolate.splev(BETWEEN, interpolate.splrep(k, v, k=o)), KNOTS, VALUES)
            for k in (1, 2, 5)
        ),
        of(lambda k, v: interpolate.make_interp_spline(k, np.stack([v, v**2]), axis=1)(BETWEEN, 1), KNOTS, VALUES),
        of(lambda t: interpolate.splev(BETWEEN, (np.concatenate([TCK[0][:4], t, TCK[0][-4:]]), *TCK[1:])), TCK[0][4:6]),
    ],
    "interpolate": [
        *(
            of(lambda y, t, b=bc: interpolate.CubicSpline(KNOTS, y, bc_type=b)(t), VALUES, BETWEEN)
            for bc in ("not-a-knot", "natural", "clamped", ((1, 0.5), (2, 0.3)))
        ),
        of(lambda y, t: interpolate.CubicSpline(KNOTS, [*y, y[0]], bc_type="periodic")(t), VALUES[:5], BETWEEN),
        of(lambda y, t: interpolate.CubicSpline(KNOTS[:3], y)(t, 1), VALUES[:3], BETWEEN),
        of(lambda y, t: interpolate.CubicSpline(KNOTS, np.stack([y, y**2]), axis=1)(t), VALUES, BETWEEN),
        of(lambda t: SPLINE(t) + SPLINE(t, 2), BETWEEN),
        of(lambda t: SPLINE(t, extrapolate=False), BETWEEN[1:4]),
        of(lambda t: interpolate.PPoly([[1.0, 2.0], [0.5, 3.0]], [2.0, 1.0, 0.0])(t), BETWEEN),
        of(lambda c, t: interpolate.PPoly(c, [0.0, 1.0, 2.0, 3.0])(t), SPD[:2], BETWEEN),
        of(lambda y, t: interpolate.CubicSpline(KNOTS, y).derivative()(t), VALUES, BETWEEN),
        of(
            lambda y: interpolate.CubicSpline(KNOTS, y).derivative().c[:, 1] * interpolate.CubicSpline(KNOTS, y).x[2],
            VALUES,
        ),
        of(lambda y, t: interpolate.CubicSpline(KNOTS, y).antiderivative()(t), VALUES, BETWEEN),
        of(lambda y, a, b: interpolate.CubicSpline(KNOTS, y).integrate(a, b), VALUES, 0.2, 3.1),
        of(lambda b: SPLINE.integrate(0.2, b), 3.1),
        of(lambda y, d, t: interpolate.CubicHermiteSpline(KNOTS, y, d)(t), VALUES, VALUES[::-1], BETWEEN),
        of(lambda y, t: interpolate.PchipInterpolator(KNOTS, y)(t), VALUES, BETWEEN),
        *(
            of(lambda y, t, k=k, n=nu: interpolate.make_interp_spline(KNOTS, y, k=k)(t, n), VALUES, BETWEEN)
            for k, nu in ((1, 0), (2, 1), (3, 0), (3, 3), (5, 2))
        ),
        *(of(lambda t, c, e=ext: interpolate.splev(t, (TCK[0], c, 3), ext=e), BETWEEN, TCK[1]) for ext in (0, 1, 3)),
        of(lambda t, c: interpolate.splev(t, (TCK[0], c, 3), der=2), BETWEEN, TCK[1]),
        of(lambda t, y: interpolate.splev(t, interpolate.splrep(KNOTS, y)), BETWEEN, VALUES),
        *(
            of(lambda y, t, k=kind: interpolate.interp1d(KNOTS, y, kind=k)(t), VALUES, BETWEEN[1:5])
            for kind in ("linear", "nearest", "nearest-up", "previous", "next", "quadratic", "cubic", "zero", "slinear")
        ),
        of(lambda y, t: interpolate.interp1d(KNOTS, y, fill_value="extrapolate")(t), VALUES, BETWEEN),
        of(lambda y, t: interpolate.interp1d(KNOTS, y, bounds_error=False, fill_value=(1.0, 2.0))(t), VALUES, BETWEEN),
        of(lambda y, t: interpolate.interp1d(KNOTS[::-1], np.stack([y, y]))(t), VALUES, BETWEEN[1:5]),
        of(lambda t: LINEAR(t), BETWEEN[1:5]),
    ],
    "integrate": [
        of(lambda y, x: integrate.trapezoid(y, x), LONG, np.cumsum([1.0, 0.5, 0.7, 0.2, 0.4])),
        of(lambda y: integrate.trapezoid(y, dx=0.1, axis=0), SPD),
        of(lambda y, x: integrate.cumulative_trapezoid(y, x, initial=0), X, [0.0, 0.3, 1.0]),
        of(lambda y, x: integrate.simpson(y, x=x), LONG, np.cumsum([1.0, 0.5, 0.7, 0.2, 0.4])),
        of(lambda y, x: integrate.simpson(y, x=x), LONG[:4], [0.0, 0.3, 1.0, 1.2]),
        of(lambda y: integrate.simpson(y, dx=0.1), LONG),
        of(lambda y, x: integrate.cumulative_simpson(y, x=x), LONG, np.cumsum([1.0, 0.5, 0.7, 0.2, 0.4])),
        of(lambda y: integrate.romb(y, dx=0.5), LONG),
    ],
    "optimize.rosen": [
        of(optimize.rosen, LONG),
        of(optimize.rosen, SPD),
        of(optimize.rosen_der, LONG),
        of(optimize.rosen_hess, LONG),
        of(optimize.rosen_hess_prod, LONG, LONG),
    ],
    "optimize, roots": [
        *(
            of(lambda a, f=find: f(lambda x, p: x**3 - p * a, 0, 10, args=(a,)), 2.0, **ROUGH)
            for find in (optimize.brentq, optimize.brenth, optimize.bisect, optimize.ridder)
        ),
        of(lambda a: optimize.brentq(lambda x: np.exp(x) - 3.0, 0.0, a), 2.0, **ROUGH),
        of(lambda a: optimize.newton(lambda x: x**3 - a, 1.5), 2.0, **ROUGH),
        of(lambda a: optimize.newton(lambda x: x**3 - a, 1.5, fprime=lambda x: 3 * x**2), 2.0, **ROUGH),
        of(lambda a: optimize.newton(lambda x, a: x**3 - a, np.ones(3), args=(a,)), X, **ROUGH),
        of(
            lambda a: optimize.newton(lambda x: x**3 - a, 1.5, lambda x: 3 * x**2, fprime2=lambda x: 6 * x),
            2.0,
            **ROUGH,
        ),
        *(
            of(lambda a, f=find: f(lambda x: x**3 - a, full_output=True)[0], 2.0, **ROUGH)
            for find in (
                lambda f, **more: optimize.brentq(f, 0.0, 3.0, **more),
                lambda f, **more: optimize.newton(f, 1.5, **more),
                lambda f, **more: optimize.fsolve(f, 1.5, xtol=1e-13, **more),
            )
        ),
        of(lambda a: optimize.toms748(lambda x: x**3 - a, 0.0, 3.0), 2.0, **ROUGH),
        *(
            of(
                lambda a, m=method: optimize.root_scalar(lambda x: x**3 - a, method=m, bracket=[0.1 * a, 3]).root,
                2.0,
                **ROUGH,
            )
            for method in (None, "bisect", "brentq", "brenth", "ridder", "toms748")
        ),
        *(
            of(
                lambda a, more=more: optimize.root_scalar(lambda x, a: x**3 - a, (a,), x0=1.5, **more).root,
                2.0,
                **ROUGH,
            )
            for more in (
                {},
                {"x1": 1.7},
                {"method": "secant", "x1": 1.7, "xtol": 1e-14},
                {"fprime": lambda x, a: 3 * x**2},
                {"fprime": lambda x, a: 3 * x**2, "fprime2": lambda x, a: 6 * x, "maxiter": 20},
            )
        ),
        of(lambda a: optimize.root_scalar(lambda x: (x**3 - a, 3 * x**2), x0=a, fprime=True).root, 2.0, **ROUGH),
        of(
            lambda a: optimize.root_scalar(lambda x: (x**3 - a, 3 * x**2, 6 * x), x0=a, fprime=True, fprime2=True).root,
            2.0,
            **ROUGH,
        ),
        of(lambda a: optimize.fsolve(lambda x: [x[0] * x[1] - a, x[0] - x[1] ** 2], [1, 1]), 2.0, **ROUGH),
        of(lambda a: optimize.fsolve(lambda x, a: x**3 - a, 1.0, (a,), fprime=lambda x, a: 3 * x**2), 2.0, **ROUGH),
        of(lambda a: optimize.root(lambda x: x**3 - a, np.ones(3), method="lm", tol=1e-13).x, X, **ROUGH),
        of(lambda a: optimize.root(lambda x, a: (x**3 - a, np.diag(3 * x**2)), X, (a,), jac=True).x, X, **ROUGH),
    ],
    "optimize, minima": [
        of(lambda a: optimize.minimize(lambda x: np.sum((x - a) ** 2) + x[0] ** 4, np.ones(3), tol=1e-9).x, X, **FLAT),
        of(
            lambda a: optimize.minimize(lambda x: np.sum((x - a) ** 2) + x[0] ** 4, np.ones(3), tol=1e-9).fun, X, **FLAT
        ),
        of(
            lambda a: (
                optimize.minimize(
                    lambda x, a: (np.cosh(x[0] - a), np.sinh(x - a)),
                    [1.0],
                    args=(a,),
                    jac=True,
                    method="L-BFGS-B",
                    tol=1e-12,
                ).x
            ),
            0.7,
            **FLAT,
        ),
        of(
            lambda y: optimize.least_squares(lambda p: p[0] * np.exp(p[1] * TIMES) - y, [1.0, 1.0], **FINE).x,
            VALUES,
            **FLAT,
        ),
        of(
            lambda y: optimize.least_squares(lambda p, y: p[0] + p[1] * TIMES - y, [1.0, 1.0], args=(y,), **FINE).cost,
            VALUES,
            **FLAT,
        ),
        *(
            of(lambda a, f=find: f(lambda x: (x - a) ** 2 + 0.1 * x**4), 1.3, **FLAT)
            for find in (optimize.brent, optimize.golden, lambda f: optimize.fminbound(f, -1, 3, xtol=1e-9))
        ),
        *(
            of(
                lambda a, o=o: optimize.minimize_scalar(lambda x, b: (x - a * b) ** 2 + np.exp(x), args=(2,), **o).x,
                0.7,
                **FLAT,
            )
            for o in (
                {},
                {"bracket": (0.0, 1.0)},
                {"bounds": (-1, 2), "options": {"xatol": 1e-9}},
                {"method": "golden"},
            )
        ),
        of(lambda a: optimize.minimize_scalar(lambda x: math.cosh(x - a) + x**2).fun, 0.7, **FLAT),
        *(
            of(lambda a, f=find: f(valley, [1.0, 1.0], (a,), xtol=1e-10, ftol=1e-13, disp=False), 0.7, **FLAT)
            for find in (optimize.fmin, optimize.fmin_powell)
        ),
        of(lambda a: optimize.fmin_bfgs(valley, [1.0, 1.0], valley_slopes, (a,), gtol=1e-8, disp=False), 0.7, **FLAT),
        of(lambda a: optimize.fmin_cg(valley, [1.0, 1.0], valley_slopes, (a,), gtol=1e-8, disp=False), 0.7, **FLAT),
        of(
            lambda a: optimize.fmin_l_bfgs_b(valley, [1.0, 1.0], valley_slopes, (a,), factr=1, pgtol=1e-10)[0],
            0.7,
            **FLAT,
        ),
        of(
            lambda a: optimize.fmin_l_bfgs_b(
                valley, [1.0, 1.0], valley_slopes, (a,), bounds=[(None, 0.2)] * 2, factr=1
            )[1],
            0.7,
            **FLAT,
        ),
    ],
    "optimize, fits": [
        *(
            of(lambda y, m=m, i=i: optimize.curve_fit(decay, TIMES, y, method=m, **BY_SLOPES)[i], VALUES, **FLAT)
            for m, i in (("lm", 0), ("trf", 0), ("trf", 1))
        ),
        *(
            of(
                lambda x, s, i=i: optimize.curve_fit(decay, x, VALUES, None, s, True, method="trf", **BY_SLOPES)[i],
                TIMES,
                SPREAD,
                **FLAT,
            )
            for i in (0, 1)
        ),
        # By differences, SciPy's own parameters are within 1e-6 of the minimum alone.
        of(
            lambda s: optimize.curve_fit(decay, [*TIMES], VALUES, None, np.diag(s) + 0.1, **BY_SLOPES)[0],
            SPREAD,
            **FLAT,
        ),
        of(lambda y: optimize.curve_fit(decay, TIMES, y, bounds=([0.5, -9], [0.9, 9]), **FINE)[0], VALUES, **FLAT),
        of(
            lambda y: optimize.leastsq(lambda p, y: decay(TIMES, *p) - y, [1.0, 0.1], (y,), ftol=1e-14)[0],
            VALUES,
            **FLAT,
        ),
        of(
            lambda y: optimize.leastsq(
                lambda p: decay(TIMES, *p) - y,
                [1, 0],
                (),
                lambda p: decay_slopes(TIMES, *p),
                True,
                ftol=1e-15,
                xtol=1e-12,
            )[1],
            VALUES,
            **FLAT,
        ),
    ],
    "integrate, differential equations": [
        of(
            lambda k, y: (
                integrate.solve_ivp(
                    lambda t, y, k: [y[1], -k * y[0]], (0, 2), y, t_eval=[0.5, 2.0], args=(k,), rtol=1e-11, atol=1e-11
                ).y
            ),
            2.0,
            [1.0, 0.3],
            rtol=1e-6,
            precision=1e-6,
        ),
        of(
            lambda k, end: integrate.solve_ivp(lambda t, y: [y[1], -k * y[0]], (0, end), [k, 0.0], **STEPS).y[:, -1],
            2.0,
            1.5,
            rtol=1e-6,
            precision=1e-6,
        ),
        of(
            lambda k, t: integrate.solve_ivp(
                lambda t, y: -k * t * y, (2, 0), [1.0], "LSODA", dense_output=True, **STEPS
            ).sol(np.array([0.3, t, 1.1])),
            2.0,
            1.5,
            rtol=1e-6,
            precision=1e-6,
        ),
        of(
            lambda k: integrate.odeint(lambda y, t: [y[1], -k * y[0]], [1.0, 0.0], [0, 0.5, 2], rtol=1e-12, atol=1e-12),
            2.0,
            rtol=1e-6,
            precision=1e-6,
        ),
        of(
            lambda k: integrate.odeint(lambda t, y, k: -k * y, 1.0, [0, 1], (k,), tfirst=True, rtol=1e-12, atol=1e-12),
            2.0,
            rtol=1e-6,
            precision=1e-6,
        ),
    ],
    "stats by rules": [
        of(lambda x, m, s: stats.norm.logpdf(x, m, s), X, 0.4, 1.3),
        of(lambda x, m, s: stats.norm(m, scale=s).logcdf(x), X, 0.4, 1.3),
        of(lambda x, a: stats.gamma(a, scale=2.0).logpdf(x), X, 1.7),
        of(lambda x, a, b: stats.beta.logpdf(x / 3, a, b), X, 1.7, 2.5),
        of(lambda x, df: stats.t.logpdf(x, df, loc=0.1), X, 3.5),
        of(lambda p: stats.binom.logpmf([1, 2, 3], 5, p), 0.4),
        of(lambda m: stats.poisson(m).pmf([1, 2, 3]), 2.4),
        of(lambda s: stats.norm(scale=s).entropy(), 1.3),
        of(lambda x, m: stats.multivariate_normal.logpdf(x, m, np.eye(3)), X, Y),
        of(lambda x, m, c: stats.multivariate_normal(m, c @ c.T).logpdf(x), X, Y, SPD),
        of(lambda x: stats.multivariate_normal(Y, SPD).logpdf(x), X),
        of(lambda x: stats.multivariate_normal(Y, SPD).pdf(x), X),
        of(lambda a: stats.dirichlet.logpdf([0.2, 0.5, 0.3], a), X),
        of(lambda a: stats.dirichlet(a).entropy(), X),
    ],
    "stats of samples": [
        *(
            of(function, SPD)
            for function in (
                stats.zscore,
                stats.gzscore,
                stats.gmean,
                stats.hmean,
                stats.gstd,
                stats.sem,
                stats.variation,
                stats.median_abs_deviation,
                stats.skew,
                stats.kurtosis,
                stats.entropy,
            )
        ),
        of(lambda x, y: stats.zmap(x, y, axis=None, ddof=1), SPD, LONG),
        of(lambda x: stats.zscore(x, axis=1, ddof=1, nan_policy="propagate"), SPD),
        of(lambda x, w: stats.gmean(x, axis=1, weights=w), SPD, X),
        of(lambda x, w: stats.hmean(x, weights=w, axis=None, keepdims=True), X, Y),
        of(lambda x, p: stats.pmean(x, p, axis=1), SPD, 2.5),
        of(lambda x: stats.pmean(x, -1.5), X),
        of(lambda x: stats.pmean(x, 0), X),
        of(lambda x: stats.sem(x, axis=None, ddof=0, keepdims=True), SPD),
        of(lambda x: stats.variation(x, axis=1, ddof=1, keepdims=True), SPD),
        of(stats.iqr, LONG),
        of(lambda x: stats.iqr(x, axis=1, rng=(80, 10), scale="normal", keepdims=True), SPD),
        of(lambda x: stats.median_abs_deviation(x, axis=None, scale="normal"), LONG),
        of(lambda x: stats.moment(x, 3), LONG),
        of(lambda x, c: stats.moment(x, [0, 1, 2], axis=1, center=c), SPD, 0.3),
        of(lambda x: stats.moment(x, 1, keepdims=True), SPD),
        of(lambda x: stats.skew(x, axis=None, bias=False, keepdims=True), SPD),
        of(lambda x: stats.skew(x, axis=1, bias=False), SPD),
        of(lambda x: stats.kurtosis(x, fisher=False, bias=False), LONG),
        of(lambda p, q: stats.entropy(p, q, base=2.0), X, Y),
        of(lambda p, q: stats.entropy(p, q, axis=1, keepdims=True), SPD, X),
        of(lambda x, y: np.array(tuple(stats.pearsonr(x, y))), LONG, [0.3, -0.1, 0.5, 0.9, 0.4]),
        of(lambda x, y: stats.pearsonr(x, y, alternative="less", axis=1).pvalue, SPD, [X]),
        of(lambda x, y: np.array(tuple(stats.linregress(x, y))), LONG, [0.3, -0.1, 0.5, 0.9, 0.4]),
        of(lambda x, y: stats.linregress(x, y, "greater").intercept_stderr, LONG, [0.3, -0.1, 0.5, 0.9, 0.4]),
    ],
    "stats by SciPy's formulas": [
        of(lambda x, a: stats.norminvgauss.sf(x, a, 0.5), X, 1.5),
        of(lambda x, a: stats.truncnorm.sf(x, -a, 3.0) + stats.truncnorm.logcdf(x, -a, 3.0), X, 1.2),
        of(lambda x, c, s: stats.weibull_min.logpdf(x, c, scale=s), X, 1.7, 2.5),
        of(lambda x, c, s: stats.weibull_min(c, scale=s).sf(x), X, 1.7, 2.5),
        of(lambda c, s: stats.weibull_min(c, 0.3, s).mean(), 1.7, 2.5),
        of(lambda c, s: stats.weibull_min.std(c, scale=s), 1.7, 2.5),
        of(lambda c, s: stats.weibull_min.median(c, scale=s), 1.7, 2.5),
        of(lambda c, s: stats.weibull_min.stats(c, 0.2, s, moments="v"), 1.7, 2.5),
        of(lambda c, s: stats.weibull_min.entropy(c, scale=s), 1.7, 2.5),
        of(lambda q, c: stats.weibull_min.ppf(q / 3, c), X, 1.7),
        of(lambda q, c: stats.weibull_min.isf(q / 3, c), X, 1.7),
        of(lambda q, m, s: stats.norm.ppf(q / 3, m, s), X, 1.7, 0.6),
        of(lambda q, a: stats.gamma.ppf(q / 3, a), X, 1.7, precision=1e-7),
        of(lambda q, m, s: stats.cauchy.ppf(q, m, s), [0.1, 0.2, 0.5, 0.7, 0.9], 0.3, 1.4, precision=1e-7),
        of(lambda q: stats.cauchy.isf(q / 3), X),
        of(lambda q, a, b: stats.beta.ppf(q / 3, a, b, scale=2.0), X, 1.7, 2.5, precision=1e-7),
        of(lambda x, c: stats.genextreme.logpdf(x, c), X, 0.2),
        of(lambda x, c: stats.genpareto.logcdf(x, c), X, 0.2),
        of(lambda x, a: stats.skewnorm.logpdf(x, a), X, 1.2),
        of(lambda x, m, s: stats.gumbel_r.logsf(x, m, s), X, 0.3, 1.4),
        of(lambda x, k: stats.vonmises.logpdf(x, k), X, 1.2),
        of(lambda x, a: stats.invgamma.pdf(x, a), X, 2.2),
        of(lambda x, a, b: stats.f.logpdf(x, a, b), X, 3.2, 4.1),
        of(lambda n, p: np.stack([getattr(stats.nbinom(n, p), m)([0, 4]) for m in ("pmf", "logcdf", "sf")]), 3.5, 0.4),
        of(lambda p: stats.geom(p).cdf([1, 2, 5]), 0.4),
        of(lambda a, b: stats.betabinom.pmf([0, 1, 4], 5, a, b), 1.5, 0.7),
    ],
}

GRIDS: dict[str, tuple[float, ...]] = {
    "cauchy": (),
    "laplace": (),
    "gumbel_r": (),
    "hypsecant": (),
    "laplace_asymmetric": (2.0,),
    "dweibull": (2.1,),
    "skewcauchy": (0.5,),
    "johnsonsu": (2.5, 2.25),
    "crystalball": (2.0, 3.0),
    "weibull_min": (1.8,),
    "loggamma": (0.4,),
    "arcsine": (),
    "semicircular": (),
    "wrapcauchy": (0.3,),
    "exponnorm": (1.5,),
}
"""Distributions with their shape parameters, by name."""

SEARCHED = {"exponnorm", "semicircular"}
"""Those of them whose quantiles have no rule."""
