"""scipy.stats: distributions whose densities and probabilities take traced values; everything else is SciPy's own.

They have SciPy's names, signatures and values, in double precision, and a derivative with respect to every real
parameter for which there is a formula; elsewhere asking for it is an error that names the parameter. What SciPy gives
outside the support (0, 1, -inf) has derivative 0; nan, for a parameter that is not allowed, has derivative nan.

>>> import fnad
>>> from fnad.scipy.stats import norm
>>> fnad.grad(norm.logpdf, argnums=(0, 1))(1.0, 3.0)
(np.float64(2.0), np.float64(-2.0))
>>> fnad.grad(lambda m: norm(m, 2.0).logpdf(1.0))(3.0)
np.float64(-0.5)
"""

from fnad.scipy.rule import others_of
from fnad.scipy.stats.dirichlet import dirichlet
from fnad.scipy.stats.distribution import Distribution
from fnad.scipy.stats.multivariate_normal import multivariate_normal

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "laplace",
    "logistic",
    "lognorm",
    "multivariate_normal",
    "norm",
    "poisson",
    "t",
    "uniform",
]

bernoulli = Distribution("bernoulli")
beta = Distribution("beta")
binom = Distribution("binom")
cauchy = Distribution("cauchy")
chi2 = Distribution("chi2")
expon = Distribution("expon")
gamma = Distribution("gamma")
laplace = Distribution("laplace")
logistic = Distribution("logistic")
lognorm = Distribution("lognorm")
norm = Distribution("norm")
poisson = Distribution("poisson")
t = Distribution("t")
uniform = Distribution("uniform")

__getattr__ = others_of("scipy.stats")
