"""Functions of packages that know nothing of fnad, with arguments: the list that foreign_code.py runs.

A generator a package, which yields (name, function, arguments). Floats and arrays of floats among the arguments are
differentiated; whatever else the function needs is bound beforehand. Nothing of the packages is changed.
"""

# ruff: noqa: E501, PLW0108 (a package is imported when its turn comes; a case is a line)
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]

DRAW = np.random.default_rng(7)
X = np.linspace(0.3, 2.9, 7)
Y = np.array([1.2, 0.7, 2.4, 1.9, 0.4, 3.1, 2.2])
A = DRAW.normal(size=(6, 3))
B = DRAW.normal(size=(4, 3))
SPD = np.array([[2.0, 0.4, 0.1], [0.4, 1.5, 0.3], [0.1, 0.3, 1.2]])
RGB = DRAW.uniform(0.1, 0.9, (4, 3))
RETURNS = DRAW.normal(0.001, 0.02, 40)
W = np.array([0.6, -0.3, 0.8])
FACTOR = DRAW.normal(0.001, 0.015, 40)


def named(module: Any, table: dict[str, tuple[Any, ...]]) -> Iterator[Case]:
    """Functions of a module by name, each with its arguments."""
    for name, args in table.items():
        function = module
        for part in name.split("."):
            function = getattr(function, part)
        yield name, function, args


def lmfit() -> Iterator[Case]:
    from lmfit import lineshapes, models

    special: dict[str, tuple[Any, ...]] = {
        "gaussian2d": (X, Y, 1.3, 1.1, 1.4, 0.8, 0.9),
        "voigt": (X, 1.3, 1.4, 0.8, 0.6),
        "pvoigt": (X, 1.3, 1.4, 0.8, 0.4),
        "moffat": (X, 1.3, 1.4, 0.8, 1.7),
        "pearson4": (X, 1.3, 1.4, 0.8, 1.7, 0.3),
        "pearson7": (X, 1.3, 1.4, 0.8, 1.7),
        "breit_wigner": (X, 1.3, 1.4, 0.8, 1.7),
        "dho": (X, 1.3, 1.4, 0.8, 0.6),
        "expgaussian": (X, 1.3, 1.4, 0.8, 0.6),
        "doniach": (X, 1.3, 1.4, 0.8, 0.2),
        "skewed_gaussian": (X, 1.3, 1.4, 0.8, 0.6),
        "skewed_voigt": (X, 1.3, 1.4, 0.8, 0.6, 0.3),
        "rectangle": (X, 1.3, 0.8, 0.9, 2.25, 0.7),
        "exponential": (X, 1.3, 0.8),
        "powerlaw": (X, 1.3, 0.8),
        "linear": (X, 1.3, 0.8),
        "expsine": (X, 1.3, 1.4, 0.8, 0.6),
        "split_lorentzian": (X, 1.3, 1.4, 0.8, 0.6),
    }
    yield from named(lineshapes, {name: special.get(name, (X, 1.3, 1.45, 0.8)) for name in lineshapes.functions})
    for form in ("erf", "logistic", "atan"):
        yield f"step {form}", partial(lineshapes.step, form=form), (X, 1.3, 1.45, 0.8)
    for model, names in (
        (models.GaussianModel(), ["amplitude", "center", "sigma"]),
        (models.VoigtModel(), ["amplitude", "center", "sigma", "gamma"]),
        (models.PolynomialModel(2), ["c0", "c1", "c2"]),
    ):

        def of_parameters(*values: Any, model: Any = model, names: list[str] = names) -> Any:
            return model.eval(x=X, **dict(zip(names, values, strict=True)))

        yield f"Model.eval {model.name}", of_parameters, (1.3, 1.4, 0.8, 0.6)[: len(names)]


def statsmodels() -> Iterator[Case]:
    import statsmodels.api as sm
    from statsmodels.tsa.statespace.tools import constrain_stationary_univariate, unconstrain_stationary_univariate
    from statsmodels.tsa.stattools import acf, acovf, levinson_durbin

    counts, binary = np.array([1, 0, 2, 3, 1, 4]), np.array([0, 1, 1, 0, 1, 0])
    beta = np.array([0.2, -0.4, 0.3])
    response = A @ beta + 0.1 * A[:, 0] ** 2
    yield "Logit.loglike", sm.Logit(binary, A).loglike, (beta,)
    yield "Probit.loglike", sm.Probit(binary, A).loglike, (beta,)
    yield "Poisson.loglike", sm.Poisson(counts, A).loglike, (beta,)
    yield "NegativeBinomial.loglike", sm.NegativeBinomial(counts, A).loglike, (np.array([0.2, -0.4, 0.3, 0.7]),)
    yield "GeneralizedPoisson.loglike", sm.GeneralizedPoisson(counts, A).loglike, (np.array([0.2, -0.4, 0.3, 0.2]),)
    yield "MNLogit.loglike", sm.MNLogit(np.array([0, 1, 2, 0, 1, 2]), A).loglike, (0.1 * np.arange(6.0),)
    yield "ZeroInflatedPoisson.loglike", sm.ZeroInflatedPoisson(counts, A).loglike, (np.array([0.3, 0.2, -0.4, 0.3]),)
    yield "OLS.loglike", sm.OLS(response, A).loglike, (beta,)
    yield "GLM.loglike Poisson", sm.GLM(counts, A, sm.families.Poisson()).loglike, (beta,)
    yield "GLM.loglike Gamma", sm.GLM(Y[:6], A, sm.families.Gamma(sm.families.links.Log())).loglike, (beta,)
    yield "GLM.loglike Gaussian", sm.GLM(Y[:6], A).loglike, (beta,)
    for name, args in {
        "Logit": (X / 4,), "Log": (X,), "CLogLog": (X / 4,), "Power": (X,), "NegativeBinomial": (X,), "Cauchy": (X / 4,)
    }.items():  # fmt: skip
        yield f"links.{name}", getattr(sm.families.links, name)(), args
        yield f"links.{name}.inverse", getattr(sm.families.links, name)().inverse, (0.3 * X - 1.5,)
    for name in ("Poisson", "Gamma", "Gaussian", "InverseGaussian"):
        yield f"{name}.deviance", getattr(sm.families, name)().deviance, (Y, X)
    yield "acf", partial(acf, nlags=3, fft=False), (Y,)
    yield "acovf", partial(acovf, fft=False), (Y,)
    yield "levinson_durbin", partial(levinson_durbin, nlags=2), (Y,)
    yield "constrain_stationary_univariate", constrain_stationary_univariate, (np.array([0.3, -0.4]),)
    yield "unconstrain_stationary_univariate", unconstrain_stationary_univariate, (np.array([0.3, -0.4]),)
    for name in ("HuberT", "TukeyBiweight", "AndrewWave", "Hampel", "LeastSquares"):
        yield f"robust.{name}.rho", getattr(sm.robust.norms, name)(), (1.3 * X - 1.77,)
    yield "robust.mad", sm.robust.mad, (Y,)


def filterpy() -> Iterator[Case]:
    from filterpy import common, kalman, leastsq, memory, stats

    f, h, q, r = np.eye(3) + 0.1 * SPD, A[:2], 0.1 * SPD, SPD[:2, :2]
    x, p, z = np.array([0.3, -0.2, 0.5]), SPD, np.array([0.4, 0.1])
    yield "kalman.predict", lambda x, p, f, q: kalman.predict(x, p, f, q), (x, p, f, q)
    yield "kalman.update", lambda x, p, z, r, h: kalman.update(x, p, z, r, h), (x, p, z, r, h)

    def filtered(kind: Any, z: Any, q: Any, r: Any) -> Any:
        filter_ = kind(dim_x=3, dim_z=2)
        filter_.x, filter_.P, filter_.F, filter_.H, filter_.Q, filter_.R = x, p, f, h, q, r
        for _ in range(3):
            filter_.predict()
            filter_.update(z)
        return filter_.x, filter_.P

    yield "KalmanFilter", partial(filtered, kalman.KalmanFilter), (z, q, r)
    yield "FadingKalmanFilter", partial(filtered, partial(kalman.FadingKalmanFilter, 1.02)), (z, q, r)

    def log_likelihood(q: Any) -> Any:
        filter_ = kalman.KalmanFilter(dim_x=3, dim_z=2)
        filter_.x, filter_.P, filter_.F, filter_.H, filter_.R = x, p, f, h, r
        filter_.Q = q
        filter_.predict()
        filter_.update(z)
        return filter_.log_likelihood

    yield "KalmanFilter.log_likelihood", log_likelihood, (q,)
    sigmas = kalman.MerweScaledSigmaPoints(3, 0.3, 2.0, 0.1)
    yield "MerweScaledSigmaPoints", sigmas.sigma_points, (x, p)
    yield "JulierSigmaPoints", kalman.JulierSigmaPoints(3, 0.5).sigma_points, (x, p)
    points = sigmas.sigma_points(x, p)
    yield "unscented_transform", lambda s: kalman.unscented_transform(s, sigmas.Wm, sigmas.Wc, q), (points,)
    yield from named(stats, {
        "gaussian": (0.3, 0.1, 1.2), "mul": (0.3, 0.4, 0.1, 0.7),
        "add": (0.3, 0.4, 0.1, 0.7), "logpdf": (x, z.sum() * x, p), "likelihood": (x, x + 0.2, p, np.eye(3), SPD),
        "mahalanobis": (x, x + 0.3, p), "multivariate_gaussian": (x, x + 0.3, p),
        "multivariate_multiply": (x, p, x + 0.3, 2 * p), "NEES": (A[:4], B, np.array([SPD] * 4)),
    })  # fmt: skip
    yield "norm_cdf", lambda a, b, mu, var: stats.norm_cdf((a, b), mu, var), (-0.3, 0.8, 0.1, 1.2)
    yield "Q_discrete_white_noise", partial(common.Q_discrete_white_noise, 3), (0.3, 1.4)
    yield "Q_continuous_white_noise", partial(common.Q_continuous_white_noise, 2), (0.3, 1.4)
    yield "kinematic_state_transition", partial(common.kinematic_state_transition, 2), (0.3,)
    yield "van_loan_discretization", common.van_loan_discretization, (0.1 * SPD, A[:3, :1], 0.3)
    yield "runge_kutta4", partial(common.runge_kutta4, f=lambda y, t: -y * t), (0.3, 0.4, 0.1)
    yield "inv_diagonal", common.inv_diagonal, (SPD,)

    def g_h(z: Any, g: Any, h: Any) -> Any:
        from filterpy.gh import GHFilter

        filter_ = GHFilter(0.1, 0.2, 1.0, g, h)
        return [filter_.update(value) for value in z]

    yield "GHFilter", g_h, (Y[:3], 0.4, 0.2)

    def smoothed(z: Any) -> Any:
        filter_ = leastsq.LeastSquaresFilter(1.0, 1)
        return [filter_.update(value) for value in z]

    yield "LeastSquaresFilter", smoothed, (Y[:3],)

    def faded(z: Any, beta: Any) -> Any:
        filter_ = memory.FadingMemoryFilter([0.0, 0.0], 1.0, 1, beta)
        for value in z:
            filter_.update(value)
        return filter_.x

    yield "FadingMemoryFilter", faded, (Y[:3], 0.6)


def colour() -> Iterator[Case]:
    import colour as c

    xyz = DRAW.uniform(0.1, 0.7, (3, 3))
    yield from named(c, {
        "XYZ_to_xyY": (xyz,), "xyY_to_XYZ": (xyz,), "XYZ_to_xy": (xyz,), "XYZ_to_Lab": (xyz,), "Lab_to_XYZ": (60 * xyz,),
        "Lab_to_LCHab": (60 * xyz,), "XYZ_to_Luv": (xyz,), "Luv_to_XYZ": (60 * xyz,), "XYZ_to_sRGB": (xyz,),
        "sRGB_to_XYZ": (RGB,), "XYZ_to_UCS": (xyz,), "XYZ_to_UVW": (60 * xyz,), "XYZ_to_Oklab": (xyz,),
        "Oklab_to_XYZ": (xyz,), "XYZ_to_IPT": (xyz,), "XYZ_to_Hunter_Lab": (60 * xyz,), "XYZ_to_ProLab": (xyz,),
        "XYZ_to_Jzazbz": (xyz,), "XYZ_to_hdr_CIELab": (xyz,), "XYZ_to_OSA_UCS": (60 * xyz,), "RGB_to_HSV": (RGB,),
        "HSV_to_RGB": (RGB,), "RGB_to_HSL": (RGB,), "RGB_to_CMY": (RGB,), "CMY_to_CMYK": (RGB,), "RGB_to_ICtCp": (RGB,),
        "RGB_to_YCbCr": (RGB,), "RGB_to_YCoCg": (RGB,), "xy_to_CCT": (np.array([0.31, 0.33]),),
        "CCT_to_xy": (6500.0,), "delta_E": (60 * RGB, 50 * RGB + 3.0),         "luminance": (50.0,), "lightness": (12.0,), "cctf_encoding": (RGB,), "cctf_decoding": (RGB,),
        "eotf": (RGB,), "oetf": (RGB,), "gamma_function": (RGB, 2.2),
    })  # fmt: skip
    for method in ("CIE 1976", "CIE 1994", "CMC", "DIN99"):
        yield f"delta_E {method}", partial(c.delta_E, method=method), (60 * RGB, 50 * RGB + 3.0)


def numpy_financial() -> Iterator[Case]:
    import numpy_financial as npf

    flows = np.array([-100.0, 39.0, 59.0, 55.0, 20.0])
    yield from named(npf, {
        "fv": (0.05, 10.0, -100.0, -100.0), "pv": (0.05, 10.0, -100.0, 15.0), "pmt": (0.07, 12.0, 2000.0),
        "nper": (0.07, -1150.0, 8000.0), "npv": (0.08, flows), "irr": (flows,), "mirr": (flows - 70.0 * (flows == 55.0), 0.1, 0.12),
    })  # fmt: skip
    yield "ipmt", lambda rate, pv: npf.ipmt(rate, 3, 12, pv), (0.07, 2000.0)
    yield "ppmt", lambda rate, pv: npf.ppmt(rate, 3, 12, pv), (0.07, 2000.0)
    yield "rate", lambda pmt, pv: npf.rate(10, pmt, pv, 0.0), (-150.0, 1000.0)


def quantecon() -> Iterator[Case]:
    import quantecon as qe

    stochastic = np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])
    stable = 0.25 * SPD
    yield from named(qe, {
        "gini_coefficient": (Y,), "lorenz_curve": (Y,), "shorrocks_index": (stochastic,),
        "solve_discrete_lyapunov": (stable, SPD), "solve_discrete_riccati": (stable, A[:3, :1], SPD, np.eye(1)),
        "gth_solve": (stochastic,), "ar_periodogram": (np.tile(Y, 3),),
        "periodogram": (Y,), "smooth": (np.tile(Y, 3),),
    })  # fmt: skip
    yield "LQ.stationary_values", lambda q, r, a, b: qe.LQ(q, r, a, b, beta=0.95).stationary_values()[0], (
        np.eye(1), SPD, stable, A[:3, :1]
    )  # fmt: skip
    yield "LinearStateSpace.moments", lambda a, c: next(qe.LinearStateSpace(a, c, A[:2]).moment_sequence())[:2], (
        stable, A[:3, :1]
    )  # fmt: skip

    def kalman(a: Any, y: Any) -> Any:
        filter_ = qe.Kalman(qe.LinearStateSpace(a, 0.3 * np.eye(3), A[:2], 0.5 * np.eye(2)), np.zeros(3), SPD)
        filter_.update(y)
        return filter_.x_hat, filter_.Sigma

    yield "Kalman.update", kalman, (stable, np.array([0.3, -0.2]))
    yield "cartesian", lambda x, y: qe.cartesian([x, y]), (X[:3], Y[:2])
    yield "hamilton_filter", lambda y: [part[4:] for part in qe.hamilton_filter(y, 2, 2)], (np.cumsum(np.tile(Y, 3)),)
    yield "tauchen", lambda rho, sigma: qe.tauchen(3, rho, sigma).P, (0.6, 0.3)
    yield "rouwenhorst", lambda rho, sigma: qe.rouwenhorst(3, rho, sigma).P, (0.6, 0.3)
    yield "quad.qnwnorm", lambda mu, sigma: qe.quad.qnwnorm(5, mu, sigma), (0.3, 1.2)
    yield "quad.qnwlege", lambda a, b: qe.quad.qnwlege(5, a, b), (0.3, 1.2)
    yield "LAE", lambda y: qe.LAE(lambda x, y: np.exp(-((y - 0.5 * x) ** 2)), Y)(y), (X,)
    yield "var_quadratic_sum", qe.var_quadratic_sum, (stable, SPD, SPD, 0.9, np.ones(3))
    yield "m_quadratic_sum", qe.m_quadratic_sum, (stable, SPD)
    yield "BetaBinomial.pdf", lambda a, b: qe.distributions.BetaBinomial(4, a, b).pdf(), (1.3, 2.1)


def sklearn() -> Iterator[Case]:
    from sklearn import metrics
    from sklearn.gaussian_process import kernels
    from sklearn.metrics import pairwise

    a, b = np.abs(A) + 0.1, np.abs(B) + 0.2
    for name in (
        "linear_kernel", "polynomial_kernel", "sigmoid_kernel", "rbf_kernel", "laplacian_kernel", "cosine_similarity",
        "chi2_kernel", "additive_chi2_kernel", "euclidean_distances", "manhattan_distances", "cosine_distances",
        "nan_euclidean_distances",
    ):  # fmt: skip
        yield name, getattr(pairwise, name), (a, b)
    yield "haversine_distances", pairwise.haversine_distances, (a[:, :2], b[:, :2])
    yield "paired_euclidean_distances", pairwise.paired_euclidean_distances, (a[:4], b)
    for name in ("RBF(0.8)", "Matern(0.8, nu=1.5)", "Matern(0.8, nu=2.5)", "RationalQuadratic(0.8, 1.2)", "DotProduct()",
                 "ExpSineSquared(0.8, 1.2)", "ConstantKernel(1.3) * RBF(0.8) + WhiteKernel(0.1)"):  # fmt: skip
        yield f"kernels.{name}", eval(name, vars(kernels)), (A, B)
    probabilities = DRAW.dirichlet(np.ones(3), 4)
    for name in (
        "mean_squared_error", "root_mean_squared_error", "mean_absolute_error", "mean_squared_log_error", "r2_score",
        "mean_absolute_percentage_error", "explained_variance_score", "max_error", "mean_pinball_loss", "median_absolute_error",
        "mean_poisson_deviance", "mean_gamma_deviance", "mean_tweedie_deviance", "d2_absolute_error_score",
    ):  # fmt: skip
        yield name, getattr(metrics, name), (Y, X)
    yield "log_loss", partial(metrics.log_loss, [0, 1, 2, 1], labels=[0, 1, 2]), (probabilities,)
    yield "hinge_loss", partial(metrics.hinge_loss, [0, 1, 1, 0]), (X[:4] - 0.8,)
    yield "brier_score_loss", partial(metrics.brier_score_loss, [0, 1, 1, 0]), (X[:4] / 4,)
    yield "auc", metrics.auc, (X, Y)
    yield "silhouette_score", lambda x: metrics.silhouette_score(x, [0, 0, 0, 1, 1, 1]), (A,)
    yield "davies_bouldin_score", lambda x: metrics.davies_bouldin_score(x, [0, 0, 0, 1, 1, 1]), (A,)
    yield "calinski_harabasz_score", lambda x: metrics.calinski_harabasz_score(x, [0, 0, 0, 1, 1, 1]), (A,)


def scipy() -> Iterator[Case]:
    from scipy import optimize, spatial, special, stats

    yield "optimize.rosen", optimize.rosen, (X,)
    yield "optimize.rosen_der", optimize.rosen_der, (X,)
    x, positive, unit = 0.7 * X - 1.0, X, X / 4
    for name, (points, *shapes) in {
        "norm": (x, 0.3, 1.4), "expon": (positive, 0.1, 1.4), "gamma": (positive, 1.7, 0.0, 1.4), "beta": (unit, 1.7, 2.3),
        "t": (x, 3.4, 0.2, 1.3), "cauchy": (x, 0.2, 1.3), "laplace": (x, 0.2, 1.3), "logistic": (x, 0.2, 1.3),
        "lognorm": (positive, 0.8), "uniform": (unit, -0.1, 1.6), "weibull_min": (positive, 1.7), "chi2": (positive, 3.4),
        "gumbel_r": (x, 0.2, 1.3),
    }.items():  # fmt: skip
        yield f"stats.{name}.logpdf", getattr(stats, name).logpdf, (points, *shapes)
    yield "stats.norm.cdf", stats.norm.cdf, (x, 0.3, 1.4)
    yield "stats.norm(...).logpdf", lambda x, loc, scale: stats.norm(loc, scale).logpdf(x), (x, 0.3, 1.4)
    yield "stats.poisson.logpmf", lambda mu: stats.poisson.logpmf(np.array([0, 1, 4]), mu), (1.7,)
    yield "stats.multivariate_normal.logpdf", stats.multivariate_normal.logpdf, (A, A[0], SPD)
    yield "special.logsumexp", special.logsumexp, (Y,)
    yield "special.softmax", special.softmax, (Y,)
    yield "spatial.distance.cdist", spatial.distance.cdist, (A, B)
    yield "stats.zscore", stats.zscore, (Y,)
    yield "stats.skew", stats.skew, (Y,)
    yield "stats.kurtosis", stats.kurtosis, (Y,)
    yield "stats.gmean", stats.gmean, (Y,)
    yield "stats.hmean", stats.hmean, (Y,)
    yield "stats.entropy", stats.entropy, (Y, X)
    yield "stats.pearsonr", lambda x, y: stats.pearsonr(x, y).statistic, (X, Y)


def astropy() -> Iterator[Case]:
    from astropy.cosmology import FlatLambdaCDM, wCDM
    from astropy.modeling import models
    from astropy.stats import biweight_location, mad_std

    shapes: dict[str, tuple[Any, ...]] = {
        "Gaussian1D": (X, 1.3, 1.4, 0.8), "Lorentz1D": (X, 1.3, 1.4, 0.8), "Moffat1D": (X, 1.3, 1.4, 0.8, 1.2),
        "Sersic1D": (X, 1.3, 1.4, 2.2), "Sine1D": (X, 1.3, 0.4, 0.1), "PowerLaw1D": (X, 1.3, 1.4, 0.8),
        "BrokenPowerLaw1D": (X, 1.3, 1.45, 0.8, 1.1), "ExponentialCutoffPowerLaw1D": (X, 1.3, 1.4, 0.8, 2.1),
        "LogParabola1D": (X, 1.3, 1.4, 0.8, 0.3), "RickerWavelet1D": (X, 1.3, 1.4, 0.8),
        "Gaussian2D": (X, Y, 1.3, 1.4, 1.6, 0.8, 0.7, 0.3), "Exponential1D": (X, 1.3, 1.4),
        "SmoothlyBrokenPowerLaw1D": (X, 1.3, 1.4, 0.8, 1.5, 0.3),
    }  # fmt: skip
    for name, args in shapes.items():
        yield f"{name}.evaluate", getattr(models, name).evaluate, args
    yield "Plummer1D.evaluate", models.Plummer1D.evaluate, (X, 1.3, 1.4)
    yield "FlatLambdaCDM.efunc", lambda z: FlatLambdaCDM(70.0, 0.3).efunc(z), (X,)
    yield "FlatLambdaCDM.inv_efunc", lambda z: FlatLambdaCDM(70.0, 0.3).inv_efunc(z), (0.7,)
    yield "wCDM.efunc", lambda z: wCDM(70.0, 0.3, 0.6, w0=-0.9).efunc(z), (X,)
    yield "biweight_location", biweight_location, (Y,)
    yield "mad_std", mad_std, (Y,)


def skimage() -> Iterator[Case]:
    from skimage import color, metrics, transform

    lab = 50 * RGB
    for name, args in {
        "rgb2gray": (RGB,), "rgb2hsv": (RGB,), "hsv2rgb": (RGB,), "rgb2xyz": (RGB,), "xyz2rgb": (RGB,), "rgb2lab": (RGB,),
        "lab2rgb": (lab,), "xyz2lab": (RGB,), "rgb2luv": (RGB,), "rgb2yuv": (RGB,), "rgb2ycbcr": (RGB,), "rgb2hed": (RGB,),
        "lab2lch": (lab,), "deltaE_cie76": (lab, lab[::-1]), "deltaE_ciede94": (lab, lab[::-1]),
        "deltaE_ciede2000": (lab, lab[::-1]), "deltaE_cmc": (lab, lab[::-1]),
    }.items():  # fmt: skip
        yield f"color.{name}", getattr(color, name), args
    yield "metrics.mean_squared_error", metrics.mean_squared_error, (A, A[::-1])
    yield "metrics.normalized_root_mse", metrics.normalized_root_mse, (A, A[::-1])
    yield "metrics.peak_signal_noise_ratio", partial(metrics.peak_signal_noise_ratio, data_range=2.0), (A, A[::-1])
    yield "transform.AffineTransform", lambda p, s: transform.AffineTransform(scale=s, rotation=0.3)(p), (A[:, :2], 1.3)


def empyrical() -> Iterator[Case]:
    import empyrical as e

    for name in (
        "annual_return", "annual_volatility", "sharpe_ratio", "sortino_ratio", "calmar_ratio", "max_drawdown",
        "downside_risk", "omega_ratio", "cum_returns", "cum_returns_final", "stability_of_timeseries", "tail_ratio", "cagr",
        "value_at_risk", "conditional_value_at_risk",
    ):  # fmt: skip
        yield name, getattr(e, name), (RETURNS,)
    for name in ("alpha", "beta", "up_capture", "down_capture", "excess_sharpe"):
        yield name, getattr(e, name), (RETURNS, FACTOR)


def control() -> Iterator[Case]:
    import control as c

    stable = -SPD
    yield "lyap", lambda a, q: c.lyap(a, q @ q.T), (stable, SPD)
    yield "dlyap", lambda a, q: c.dlyap(a, q @ q.T), (0.25 * SPD, SPD)
    yield "ctrb", c.ctrb, (stable, A[:3, :1])
    yield "obsv", c.obsv, (stable, A[:2])
    yield "care", lambda a, b, q: c.care(a, b, q @ q.T)[0], (stable, A[:3, :1], SPD)
    yield "lqr", lambda a, b: c.lqr(a, b, SPD, np.eye(1))[0], (stable, A[:3, :1])
    yield "mag2db", c.mag2db, (1.7,)
    yield "db2mag", c.db2mag, (1.7,)
    yield "acker", lambda a, b: c.acker(a, b, [-1.0, -2.0, -3.0]), (stable, A[:3, :1])


def fluids() -> Iterator[Case]:
    import fluids as f

    yield from named(f, {
        "Reynolds": (2.5, 0.25, 1.18, 1.9e-5), "Prandtl": (1637.0, 0.01, 4e-6), "Weber": (0.2, 0.001, 998.0, 0.07),
        "Bond": (1000.0, 1.2, 0.05, 2.0), "Froude": (1.83, 2.0, 1.63), "Grashof": (0.9, 0.1, 300.0, 299.0, 1.1, 2e-5),
        "friction_factor": (1e5, 1e-4), "Clamond": (1e5, 1e-4), "Haaland": (1e5, 1e-4), "Colebrook": (1e5, 1e-4),
        "friction_laminar": (128.0,), "one_phase_dP": (10.0, 1000.0, 1e-5, 0.1, 1e-5, 1.0),
        "bend_rounded": (0.1, 1.5, 0.01), "contraction_sharp": (1.0, 0.4), "diffuser_sharp": (0.5, 1.0),
        "drag_sphere": (200.0,), "v_terminal": (70e-6, 2600.0, 1000.0, 1e-3), "Ergun": (1e-3, 0.4, 1e-3, 1e3, 1e-3, 0.5),
        "nozzle_expansibility": (0.06, 0.01, 1e5, 9e4, 1.4), "isothermal_gas": (11.3, 0.01, 1e6, 9e5, None, 1000.0, 0.5),
        "speed_synchronous": (50.0,), "isentropic_work_compression": (300.0, 1.4, 0.9, 1e5, 3e5, None, 0.8),
        "P_isothermal_critical_flow": (1e6, 0.01, 1000.0, 0.5), "Stichlmair_dry": (0.4, 5.0, 5e-5, 0.68, 260.0, 32.0, 7.0, 1.0),
    })  # fmt: skip


def ht() -> Iterator[Case]:
    import ht as h

    yield from named(h, {
        "LMTD": (100.0, 60.0, 20.0, 45.0), "turbulent_Dittus_Boelter": (1e5, 1.2), "turbulent_Colburn": (1e5, 1.2),
        "turbulent_Gnielinski": (1e5, 1.2, 0.0185), "laminar_entry_Seider_Tate": (1e4, 1.2, 0.01, 0.1), "q_rad": (0.9, 400.0, 300.0),
        "blackbody_spectral_radiance": (800.0, 4e-6), "fin_efficiency_Kern_Kraus": (0.05, 0.06, 0.0004, 200.0, 50.0),
        "effectiveness_from_NTU": (1.5, 0.6), "Nu_external_cylinder": (6071.0, 0.7),
        "k_to_R": (0.05, 0.025), "R_value_to_k": (0.12,), "Rohsenow": (957.9, 0.59, 2.8e-4, 0.68, 4217.0, 2.3e6, 0.06, 4.9),
    })  # fmt: skip


def chemicals() -> Iterator[Case]:
    import chemicals as c

    yield from named(c, {
        "Antoine": (100.0, 8.7687, 395.744, -6.469), "Wagner": (100.0, 190.53, 4.6e6, -6.02, 1.26, -0.57, -1.37),
        "Psat_IAPWS": (300.0,), "Rackett": (272.0, 408.0, 3.65e6, 0.27),
        "boiling_critical_relation": (300.0, 347.2, 517.0, 7.0e6), "Lee_Kesler": (347.2, 425.1, 3.8e6, 0.19), "SNM0": (500.0, 700.0, 1e-4, 0.3),
        "COSTALD": (272.0, 369.8, 2e-4, 0.15),        "Poling": (300.0, 4.0, 1e-3, 1e-6, 1e-9, 1e-12), "EQ100": (300.0, 2.76, -2.0e-3, 8.1e-6, -1.4e-8, 9.3e-12),
        "EQ105": (300.0, 0.7, 0.26, 512.0, 0.23), "EQ107": (300.0, 33363.0, 26790.0, 2610.5, 8896.0, 1169.0),
    })  # fmt: skip


def pypfopt() -> Iterator[Case]:
    from pypfopt import objective_functions as o

    weights, mu = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.07, 0.12])
    yield "portfolio_variance", o.portfolio_variance, (weights, SPD)
    yield "portfolio_return", o.portfolio_return, (weights, mu)
    yield "sharpe_ratio", lambda w, mu, cov: o.sharpe_ratio(w, mu, cov, 0.02), (weights, mu, SPD)
    yield "quadratic_utility", lambda w, mu: o.quadratic_utility(w, mu, SPD, 2.0), (weights, mu)
    yield "L2_reg", o.L2_reg, (weights,)
    yield "transaction_cost", o.transaction_cost, (weights, np.array([0.4, 0.4, 0.2]))


def properscoring() -> Iterator[Case]:
    import properscoring as ps

    yield "crps_gaussian", ps.crps_gaussian, (Y, X, np.full(7, 0.8))
    yield "crps_ensemble", ps.crps_ensemble, (Y[:4], B[:, :3])
    yield "brier_score", partial(ps.brier_score, np.array([0.0, 1.0, 1.0])), (np.array([0.2, 0.7, 0.9]),)


def pvlib() -> Iterator[Case]:
    from pvlib import irradiance, pvsystem, singlediode, solarposition, temperature

    yield "singlediode.bishop88", lambda *a: singlediode.bishop88(*a)[:3], (0.3, 6.0, 1e-3, 0.4, 300.0, 1.7)
    yield "temperature.pvsyst_cell", temperature.pvsyst_cell, (800.0, 25.0, 2.0)
    yield "temperature.sapm_cell", temperature.sapm_cell, (800.0, 25.0, 2.0, -3.5, -0.06, 3.0)
    yield "irradiance.aoi_projection", irradiance.aoi_projection, (30.0, 180.0, 40.0, 170.0)
    yield "irradiance.isotropic", irradiance.isotropic, (30.0, 100.0)
    yield "pvsystem.calcparams_desoto", pvsystem.calcparams_desoto, (800.0, 45.0, 0.003, 1.7, 6.0, 1e-3, 300.0, 0.4)
    yield "solarposition.declination_spencer71", solarposition.declination_spencer71, (120.0,)
    yield (
        "singlediode.i_from_v",
        lambda v, il: pvsystem.i_from_v(v, il, 1e-9, 0.4, 300.0, 1.7, method="lambertw"),
        (20.0, 6.0),
    )


def transforms3d() -> Iterator[Case]:
    from transforms3d import affines, axangles, euler, quaternions, reflections

    q, turn = np.array([0.5, 0.4, -0.3, 0.7]), euler.euler2mat(0.3, -0.4, 0.5)
    unit = q / np.linalg.norm(q)
    yield from named(quaternions, {
        "quat2mat": (q,), "mat2quat": (turn,), "qmult": (q, unit), "qconjugate": (q,), "qnorm": (q,), "qinverse": (q,),
        "qexp": (q,), "qlog": (q,), "qpow": (q, 0.7), "rotate_vector": (W, q), "axangle2quat": (W, 0.7), "quat2axangle": (q,),
        "fillpositive": (q[1:] / 2,),
    })  # fmt: skip
    yield from named(euler, {
        "euler2mat": (0.3, -0.4, 0.5), "mat2euler": (turn,), "euler2quat": (0.3, -0.4, 0.5), "quat2euler": (unit,),
        "euler2axangle": (0.3, -0.4, 0.5), "axangle2euler": (W, 0.7),
    })  # fmt: skip
    yield "axangle2mat", axangles.axangle2mat, (W, 0.7)
    yield "affines.compose", affines.compose, (W, turn, np.array([1.2, 0.8, 1.1]))
    yield "affines.decompose", affines.decompose, (affines.compose(W, turn, np.array([1.2, 0.8, 1.1])),)
    yield "rfnorm2mat", reflections.rfnorm2mat, (W,)


def pyquaternion() -> Iterator[Case]:
    from pyquaternion import Quaternion

    q, p = np.array([0.5, 0.4, -0.3, 0.7]), np.array([0.9, 0.1, 0.2, -0.3])
    for name in ("rotation_matrix", "yaw_pitch_roll", "inverse", "norm", "angle", "axis", "normalised", "polar_angle"):
        yield name, lambda x, name=name: of_quaternion(getattr(Quaternion(x), name)), (q,)
    yield "product", lambda x, y: (Quaternion(x) * Quaternion(y)).elements, (q, p)
    yield "rotate", lambda x, v: Quaternion(x).rotate(v), (q, W)
    yield "exp", lambda x: Quaternion.exp(Quaternion(x)).elements, (q,)
    yield "log", lambda x: Quaternion.log(Quaternion(x)).elements, (q,)
    yield "slerp", lambda x, y, t: Quaternion.slerp(Quaternion(x), Quaternion(y), t).elements, (q, p, 0.3)
    yield "distance", lambda x, y: Quaternion.distance(Quaternion(x), Quaternion(y)), (q, p)
    yield "axis, angle", lambda v, a: Quaternion(axis=v, angle=a).elements, (W, 0.7)
    yield "power", lambda x: (Quaternion(x) ** 0.7).elements, (q,)


def of_quaternion(value: Any) -> Any:
    return getattr(value, "elements", value)


def ahrs() -> Iterator[Case]:
    from ahrs import Quaternion, filters
    from ahrs.common import orientation as o

    q, p = np.array([0.5, 0.4, -0.3, 0.7]), np.array([0.9, 0.1, 0.2, -0.3])
    down, north = np.array([0.3, -0.2, 9.7]), np.array([20.0, 3.0, 40.0])
    yield from named(o, {
        "acc2q": (down,), "am2q": (down, north), "am2angles": (down, north), "q2R": (q / np.linalg.norm(q),), "q2euler": (q,),
        "q_prod": (q, p), "q_conj": (q,), "rpy2q": (np.array([0.3, -0.4, 0.5]),), "quat2axang": (q,), "axang2quat": (W, 0.7),
        "ecompass": (down, north),
    })  # fmt: skip
    yield "Quaternion.to_DCM", lambda x: Quaternion(x).to_DCM(), (q,)
    yield (
        "Madgwick.updateIMU",
        lambda x, g, a: filters.Madgwick().updateIMU(x, g, a),
        (q / np.linalg.norm(q), W / 10, down),
    )
    yield "Mahony.updateIMU", lambda x, g, a: filters.Mahony().updateIMU(x, g, a), (q / np.linalg.norm(q), W / 10, down)
    yield "AngularRate.update", lambda x, g: filters.AngularRate().update(x, g), (q / np.linalg.norm(q), W / 10)


def psychrolib() -> Iterator[Case]:
    import psychrolib as p

    p.SetUnitSystem(p.SI)
    module = type("Functions", (), {"__getattr__": lambda self, name: getattr(p, name)})()
    yield from named(module, {
        "GetSatVapPres": (25.0,), "GetHumRatioFromRelHum": (25.0, 0.4, 101325.0), "GetTDewPointFromRelHum": (25.0, 0.4),
        "GetTWetBulbFromRelHum": (25.0, 0.4, 101325.0), "GetMoistAirEnthalpy": (25.0, 0.01), "GetMoistAirDensity": (25.0, 0.01, 101325.0),
        "GetVaporPressureDeficit": (25.0, 0.01, 101325.0), "GetDegreeOfSaturation": (25.0, 0.01, 101325.0),
        "GetStandardAtmPressure": (1000.0,), "GetRelHumFromTWetBulb": (25.0, 18.0, 101325.0),
    })  # fmt: skip


def iapws() -> Iterator[Case]:
    import iapws as i
    from iapws import iapws97 as w

    yield from named(w, {
        "_Region1": (300.0, 3.0), "_Region2": (700.0, 0.0035), "_PSat_T": (300.0,), "_TSat_P": (1.0,), "_Backward1_T_Ph": (3.0, 500.0),
        "_h13_s": (3.6,),
    })  # fmt: skip
    yield "_Viscosity", i._Viscosity, (998.0, 298.15)
    yield "_ThCond", i._ThCond, (998.0, 298.15)
    yield "_Tension", i._Tension, (300.0,)
    yield "_Dielectric", i._Dielectric, (999.0, 298.15)
    yield "_Ice", i._Ice, (273.0, 0.1)
    yield "IAPWS97.h", lambda t, p: i.IAPWS97(T=t, P=p).h, (500.0, 3.0)


def hydroerr() -> Iterator[Case]:
    import HydroErr

    simulated, observed = Y, np.array([1.0, 0.9, 2.1, 2.2, 0.6, 2.8, 2.0])
    for name in (
        "rmse", "mae", "nse", "kge_2009", "kge_2012", "pearson_r", "r_squared", "mape", "maape", "irmse", "lm_index", "nrmse_iqr",
        "sa", "sid", "sga", "sc", "ve", "watt_m", "d1", "drel", "h1_mahe", "nse_mod",
    ):  # fmt: skip
        yield name, getattr(HydroErr, name), (simulated, observed)


def vollib() -> Iterator[Case]:
    from vollib import black_scholes as bs
    from vollib.ref_python import black, black_scholes, black_scholes_merton
    from vollib.ref_python.black_scholes.greeks import analytical

    yield "black", lambda f, k, t, r, s: black.black("c", f, k, t, r, s), (100.0, 95.0, 0.5, 0.02, 0.3)
    yield (
        "black_scholes",
        lambda f, k, t, r, s: black_scholes.black_scholes("p", f, k, t, r, s),
        (100.0, 95.0, 0.5, 0.02, 0.3),
    )
    yield (
        "black_scholes_merton",
        lambda f, k, t, r, s, q: black_scholes_merton.black_scholes_merton("c", f, k, t, r, s, q),
        (100.0, 95.0, 0.5, 0.02, 0.3, 0.01),
    )
    for name in ("delta", "gamma", "vega", "theta", "rho"):
        yield (
            name,
            lambda f, k, t, r, s, name=name: getattr(analytical, name)("c", f, k, t, r, s),
            (100.0, 95.0, 0.5, 0.02, 0.3),
        )
    yield "lets_be_rational", lambda f, k, t, r, s: bs.black_scholes("c", f, k, t, r, s), (100.0, 95.0, 0.5, 0.02, 0.3)
    from vollib.black_scholes.implied_volatility import implied_volatility

    yield "implied_volatility", lambda v, f, k: implied_volatility(v, f, k, 0.5, 0.02, "c"), (11.5, 100.0, 95.0)


def tmm() -> Iterator[Case]:
    import tmm as t

    def coherent(wanted: str, pol: str) -> Any:
        return lambda d, angle, wave: t.coh_tmm(
            pol, [1.0, 1.5, 2.0 + 0.1j, 1.3], [np.inf, d[0], d[1], np.inf], angle, wave
        )[wanted]

    at = (np.array([100.0, 300.0]), 0.3, 500.0)
    for wanted, pol in (("R", "s"), ("T", "p"), ("power_entering", "s")):
        yield f"coh_tmm {wanted} {pol}", coherent(wanted, pol), at
    yield "snell", lambda a: t.snell(1.0, 1.5, a), (0.3,)
    yield "interface_R", lambda a: t.interface_R("s", 1.0, 1.5, a, t.snell(1.0, 1.5, a)), (0.3,)
    yield (
        "unpolarized_RT",
        lambda d, a: t.unpolarized_RT([1.0, 1.5, 1.3], [np.inf, d, np.inf], a, 500.0)["R"],
        (200.0, 0.3),
    )
    yield "ellips", lambda d, a: t.ellips([1.0, 1.5, 1.3], [np.inf, d, np.inf], a, 500.0)["psi"], (200.0, 0.3)
    yield (
        "absorp_in_each_layer",
        lambda d: t.absorp_in_each_layer(t.coh_tmm("s", [1.0, 1.5 + 0.2j, 1.3], [np.inf, d, np.inf], 0.3, 500.0)),
        (200.0,),
    )


def seawater() -> Iterator[Case]:
    import seawater as w

    s, t, p = np.array([34.5, 35.1]), np.array([12.0, 18.5]), np.array([500.0, 1200.0])
    for name in ("dens", "svel", "cp", "adtg", "alpha", "beta", "svan", "cndr", "seck"):
        yield name, getattr(w, name), (s, t, p)
    yield from named(w, {
        "dens0": (s, t), "smow": (t,), "fp": (s, p), "dpth": (p, 30.0), "pres": (p, 30.0), "ptmp": (s, t, p, 0.0), "pden": (s, t, p, 0.0),
        "f": (30.0,), "g": (30.0,), "satO2": (s, t), "salrt": (t,), "gpan": (s, t, p), "salt": (np.array([0.9, 1.1]), t, p),
    })  # fmt: skip


def skfuzzy() -> Iterator[Case]:
    import skfuzzy as z

    x = np.linspace(0.05, 3.95, 9)
    yield from named(z, {
        "trimf": (x, np.array([0.5, 1.9, 3.1])), "trapmf": (x, np.array([0.4, 1.1, 2.2, 3.3])), "gaussmf": (x, 1.9, 0.7), "gbellmf": (x, 1.1, 2.0, 1.9),
        "sigmf": (x, 1.9, 2.0), "gauss2mf": (x, 1.2, 0.5, 2.3, 0.4), "dsigmf": (x, 1.1, 2.0, 2.3, 3.0), "smf": (x, 0.7, 3.2), "zmf": (x, 0.7, 3.2),
        "pimf": (x, 0.4, 1.1, 2.2, 3.3), "centroid": (x, np.exp(-((x - 1.7) ** 2))),
    })  # fmt: skip
    yield "defuzz", lambda x, m: z.defuzz(x, m, "bisector"), (x, np.exp(-((x - 1.7) ** 2)))
    yield "interp_membership", z.interp_membership, (x, np.exp(-((x - 1.7) ** 2)), 2.2)
    yield "maxmin_composition", z.maxmin_composition, (A[:3] ** 2, B[:3] ** 2 + 0.1)


def haversine() -> Iterator[Case]:
    import haversine as h

    yield (
        "haversine",
        lambda a, b: h.haversine((a[0], a[1]), (b[0], b[1])),
        (np.array([45.7, 4.8]), np.array([48.8, 2.3])),
    )
    yield (
        "haversine_vector",
        h.haversine_vector,
        (np.array([[45.7, 4.8], [41.0, 2.0]]), np.array([[48.8, 2.3], [51.5, -0.1]])),
    )
    yield (
        "inverse_haversine",
        lambda a, d, t: h.inverse_haversine((a[0], a[1]), d, t),
        (np.array([45.7, 4.8]), 32.0, 0.7),
    )


def geopy() -> Iterator[Case]:
    from geopy import distance as d

    yield (
        "great_circle",
        lambda a, b: d.great_circle((a[0], a[1]), (b[0], b[1])).km,
        (np.array([45.7, 4.8]), np.array([48.8, 2.3])),
    )
    yield (
        "geodesic",
        lambda a, b: d.geodesic((a[0], a[1]), (b[0], b[1])).km,
        (np.array([45.7, 4.8]), np.array([48.8, 2.3])),
    )


def pyastronomy() -> Iterator[Case]:
    from PyAstronomy import pyasl as a

    w = np.linspace(5000.0, 5010.0, 9)
    yield from named(a, {
        "planck": (5800.0, 5e-7), "airtovac2": (w,), "vactoair2": (w,), "getAngDist": (10.0, 20.0, 12.0, 25.0), "transitDuration": (0.05, 0.1, 1.0, 88.0, 3.0),
        "roche_lobe_radius_eggleton": (0.7, 1), "lambertPhaseFunction": (0.8,), "thermalBroadeningWidth": (5000.0, 5000.0, 1.0),
        "atmosphericScaleHeight": (1500.0, 2.3, 10.0), "airmassPP": (40.0,), "airmassSpherical": (40.0, 2.0),
        "absMagToPower": (4.8,), "positionAngle": (10.0, 20.0, 10.1, 20.1), "aitoff": (40.0, 20.0), "gal_uvw": (20.0, 30.0, 40.0, 10.0, 5.0, 20.0),
        "premat": (1950.0, 2000.0), "co_refract_forward": (30.0,),
    })  # fmt: skip
    yield "sunpos", lambda day: a.sunpos(2455000.0 + day), (0.5,)
    yield "instrBroadGaussFast", lambda f: a.instrBroadGaussFast(w, f, 5000), (np.cos(w),)
    yield "dopplerShift", lambda f: a.dopplerShift(w, f, 20.0, edgeHandling="firstlast")[0], (np.cos(w),)
    yield "smooth", lambda f: a.smooth(f, 3, "flat"), (np.cos(w),)


def pytransform3d() -> Iterator[Case]:
    from pytransform3d import rotations as r
    from pytransform3d import transformations as t

    turn = r.matrix_from_euler(np.array([0.3, -0.4, 0.5]), 0, 1, 2, extrinsic=True)
    q = np.array([0.5, 0.4, -0.3, 0.7]) / np.linalg.norm([0.5, 0.4, -0.3, 0.7])
    yield from named(r, {
        "matrix_from_quaternion": (q,), "matrix_from_compact_axis_angle": (W,),
        "quaternion_from_axis_angle": (np.array([0.6, 0.0, 0.8, 0.7]),), "concatenate_quaternions": (q, q[::-1].copy()), "q_prod_vector": (q, W),
        "quaternion_slerp": (q, q[::-1].copy(), 0.3), "mrp_from_quaternion": (q,), "cross_product_matrix": (W,), "left_jacobian_SO3": (W,),
        "angle_between_vectors": (W, Y[:3]), "norm_matrix": (turn,),
    })  # fmt: skip
    yield "matrix_from_euler", lambda e: r.matrix_from_euler(e, 0, 1, 2, extrinsic=True), (np.array([0.3, -0.4, 0.5]),)
    yield from named(t, {
        "transform_from_exponential_coordinates": (np.array([0.3, -0.4, 0.5, 1.0, 2.0, 0.1]),), "transform_from_pq": (np.concatenate([W, q]),),
    })  # fmt: skip


PACKAGES: dict[str, Callable[[], Iterator[Case]]] = {
    "lmfit": lmfit, "statsmodels": statsmodels, "filterpy": filterpy, "colour-science": colour,
    "numpy-financial": numpy_financial, "quantecon": quantecon, "scikit-learn": sklearn, "scipy": scipy, "astropy": astropy,
    "scikit-image": skimage, "empyrical-reloaded": empyrical, "control": control, "fluids": fluids, "ht": ht,
    "chemicals": chemicals, "PyPortfolioOpt": pypfopt, "properscoring": properscoring, "pvlib": pvlib,
    "transforms3d": transforms3d, "pyquaternion": pyquaternion, "AHRS": ahrs, "PsychroLib": psychrolib, "iapws": iapws,
    "HydroErr": hydroerr, "vollib": vollib, "tmm": tmm, "seawater": seawater, "scikit-fuzzy": skfuzzy,
    "haversine": haversine, "geopy": geopy, "PyAstronomy": pyastronomy, "pytransform3d": pytransform3d,
}  # fmt: skip
