"""The functions of SciPy, and the methods of its classes, that `fnad.scipy` has a rule for, by module.

They are listed here so that a trace can tell which of SciPy's functions to take without importing the rules, which is
done when one of them is called. What is under a name here is under the same name in the module of fnad.scipy. The layer
of the array API standard over NumPy, which SciPy has too, calls LAPACK past NumPy's functions: those stand in for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

TABLE: dict[str, dict[str, tuple[str, ...]]] = {}
"""By SciPy module: the modules of fnad.scipy, and the names that these have."""

# fmt: off
TABLE["scipy.linalg"] = {"fnad.scipy.linalg": (
    "cho_factor", "cho_solve", "cholesky", "circulant", "det", "eig", "eigh", "eigh_tridiagonal", "eigvals", "expm",
    "expm_frechet", "hankel", "inv", "logm", "lstsq", "lu", "lu_factor", "lu_solve", "matmul_toeplitz", "norm",
    "null_space", "pinv", "pinvh", "qr", "signm", "solve", "solve_banded", "solve_circulant", "solve_continuous_are",
    "solve_continuous_lyapunov", "solve_discrete_are", "solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz",
    "solve_triangular", "solveh_banded", "sqrtm", "svd", "toeplitz",
)}
TABLE["scipy.fft"] = {"fnad.scipy.fft": (
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftn", "fht", "hfft", "hfft2", "hfftn", "idct", "idctn", "idst",
    "idstn", "ifft", "ifft2", "ifftn", "ifht", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftn",
)}
TABLE["scipy.signal"] = {"fnad.scipy.signal": (
    "convolve", "convolve2d", "correlate", "detrend", "fftconvolve", "lfilter", "lfilter_zi", "lfiltic", "sosfilt",
    "upfirdn",
)}
TABLE["scipy.spatial.distance"] = {"fnad.scipy.spatial.distance": (
    "cdist", "correlation", "cosine", "pdist", "squareform",
)}
TABLE["scipy.ndimage"] = {"fnad.scipy.ndimage": (), "fnad.scipy.image_interpolation": (
    "affine_transform", "map_coordinates", "shift",
)}
TABLE["scipy.interpolate"] = {"fnad.scipy.interpolate": (
    "Akima1DInterpolator.__init__", "BSpline.__call__",
    "PPoly.__call__", "PPoly.__init__", "PPoly.antiderivative", "PPoly.derivative", "PPoly.integrate",
    "interp1d.__init__", "make_interp_spline", "splev", "splrep",
), "fnad.scipy.fitpack": (
    "InterpolatedUnivariateSpline.__init__", "LSQUnivariateSpline.__init__", "RectBivariateSpline.__init__",
    "UnivariateSpline.__call__", "UnivariateSpline.__init__", "UnivariateSpline.derivatives",
    "UnivariateSpline.integral",
), "fnad.scipy.radial": ("RBFInterpolator.__call__", "RBFInterpolator.__init__"), "fnad.scipy.regular_grids": (
    "RegularGridInterpolator.__call__", "RegularGridInterpolator.__init__", "interpn",
)}
TABLE["scipy.interpolate._fitpack2"] = {"fnad.scipy.fitpack": ("_BivariateSplineBase.__call__",)}
TABLE["scipy.interpolate._polyint"] = {"fnad.scipy.interpolate": ("_Interpolator1D.__call__",)}
for module, kind, methods in (
    ("_base", "_spbase", ("_add_dense", "_matmul_dispatch", "_rmatmul_dispatch", "multiply")),
    ("_compressed", "_cs_matrix", ("__init__", "_add_dense", "_add_sparse", "_sub_sparse")),
    ("_coo", "_coo_base", (
        "__init__", "_add_dense", "_add_sparse", "_matmul_dispatch", "_rmatmul_dispatch", "_sub_sparse",
    )),
    ("_dia", "_dia_base", ("__init__", "_add_sparse", "_sub_sparse", "multiply")),
):
    TABLE[f"scipy.sparse.{module}"] = {"fnad.scipy.sparse": tuple(f"{kind}.{method}" for method in methods)}
TABLE["scipy.sparse._construct"] = {"fnad.scipy.sparse": ("_block",)}
TABLE["scipy.sparse.linalg"] = {"fnad.scipy.sparse_linalg": (
    "bicg", "bicgstab", "cg", "cgs", "gmres", "splu", "spsolve",
)}
TABLE["scipy.special"] = {"fnad.scipy.special": (
    "comb", "factorial", "log_softmax", "logsumexp", "multigammaln", "perm", "polygamma", "softmax", "spherical_in",
    "spherical_jn", "spherical_kn", "spherical_yn",
)}
TABLE["scipy.integrate"] = {"fnad.api.solvers.ode": ("odeint", "solve_ivp"), "fnad.api.solvers.quadrature": (
    "dblquad", "fixed_quad", "nquad", "quad", "quad_vec", "tplquad",
)}
TABLE["scipy.optimize"] = {
    "fnad.api.solvers.roots": (
        "bisect", "brenth", "brentq", "fsolve", "newton", "ridder", "root", "root_scalar", "toms748",
    ),
    "fnad.api.solvers.minima": (
        "brent", "curve_fit", "fmin", "fmin_bfgs", "fmin_cg", "fmin_l_bfgs_b", "fmin_powell", "fminbound", "golden",
        "least_squares", "leastsq", "minimize", "minimize_scalar",
    ),
}

CONTINUOUS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
DISCRETE = ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf")
TABLE["scipy.stats._distn_infrastructure"] = {"fnad.scipy.stats.generic": (
    *(f"rv_continuous.{name}" for name in CONTINUOUS),
    *(f"rv_discrete.{name}" for name in DISCRETE),
    *(f"rv_generic.{name}" for name in ("entropy", "stats")),
)}
TABLE["scipy.stats"] = {"fnad.scipy.stats.summary": (
    "entropy", "gmean", "hmean", "iqr", "kurtosis", "linregress", "median_abs_deviation", "moment", "pearsonr", "pmean",
    "sem", "skew", "variation",
)}
TABLE["scipy.stats._kde"] = {"fnad.scipy.stats.kernel_density": tuple(
    f"gaussian_kde.{name}" for name in ("evaluate", "logpdf")
)}
TABLE["scipy.stats._multivariate"] = {"fnad.scipy.stats.generic": (
    *(f"dirichlet_gen.{name}" for name in ("__call__", "pdf", "logpdf", "entropy")),
    *(f"multivariate_normal_gen.{name}" for name in ("__call__", "pdf", "logpdf", "cdf", "logcdf", "entropy")),
    *(f"multivariate_normal_frozen.{name}" for name in ("pdf", "logpdf", "cdf", "logcdf")),
)}
TABLE["numpy.ma.core"] = {"fnad.trace.masked_functions": (
    "MaskedArray.__new__", "MaskedArray._comparison", "_DomainedBinaryOperation.__call__",
    "_MaskedBinaryOperation.__call__", "_MaskedUnaryOperation.__call__", "concatenate", "dot", "filled",
    "getdata", "getmaskarray", "masked_invalid", "masked_where", "power", "where",
)}
for holder in ("", "scipy._lib.", "sklearn.externals."):  # who has a copy
    TABLE[f"{holder}array_api_compat.numpy.linalg"] = {"numpy.linalg": ("solve",)}
# fmt: on


def offered_by(module: ModuleType) -> Iterator[tuple[Any, str]]:
    """The functions of a module that have a rule, each with the path of the rule."""
    for offering, names in TABLE[module.__name__].items():
        for name in names:
            function: Any = module
            for part in name.split("."):
                function = getattr(function, part, None)
            if function is not None:
                yield function, f"{offering}:{name}"
