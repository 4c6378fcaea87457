"""Compiled code that user code calls gets ordinary arrays from NumPy, also in a second run, where arrays are traced."""

import contextlib
import operator
from functools import partial

import numba
import numpy as np
import pytest
import scipy.cluster.hierarchy
import scipy.interpolate
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse.csgraph
import scipy.spatial
import scipy.stats
import sklearn.tree
from numpy.random import RandomState
from sklearn.metrics._pairwise_fast import _chi2_kernel_fast
from sklearn.utils.murmurhash import murmurhash3_32
from sklearn.utils.random import sample_without_replacement

import fnad
from fnad.errors import FnadError, TracerEscapeError
from fnad.numpy.namespace import NEW
from fnad.trace.tracer import Tracer

X = np.array([0.5, 1.5, 2.5])
POINTS = np.random.default_rng(0).standard_normal((6, 2))
WEIGHTS = np.array([0.2, 0.3, 0.5])


@pytest.fixture(autouse=True, scope="module")
def _filled() -> None:
    """Compile it before it is traced; not when the file is imported, which every process does that runs any tests."""
    fill(1)


def scaled(by):
    @numba.njit
    def fill(n):
        made = np.zeros(n)
        made += np.ones(n) * by
        return np.concatenate((made, np.arange(3.0)))

    return fill


@numba.vectorize
def shifted(x):
    return x + 1.0


TREE = sklearn.tree.DecisionTreeRegressor(random_state=0).fit(POINTS, POINTS[:, 0])
PATH = partial(TREE.tree_.decision_path, POINTS.astype(np.float32))
fill = scaled(3.0)
state, generator = partial(RandomState, 0), partial(np.random.default_rng, 0)

CLIENTS = {
    "randn": lambda: state().randn(3),
    "exponential": lambda: state().exponential(size=(3,)),
    "gamma of arrays": lambda: state().gamma(WEIGHTS, WEIGHTS),
    "integers": lambda: state().randint(5, size=4),
    "binomial of arrays": lambda: state().binomial([3, 4], 0.5),
    "hypergeometric": lambda: state().hypergeometric(3, 4, 5, size=2),
    "dirichlet": lambda: state().dirichlet(WEIGHTS),
    "multinomial": lambda: state().multinomial(9, WEIGHTS, size=2),
    "multivariate normal": lambda: state().multivariate_normal(np.zeros(2), np.eye(2), size=3),
    "choice": lambda: state().choice(3, 2, p=WEIGHTS),
    "permutation": lambda: state().permutation(5),
    "standard normal": lambda: generator().standard_normal(3),
    "float32": lambda: generator().random(3, dtype=np.float32),
    "generator's integers": lambda: generator().integers(0, [3, 4, 5]),
    "generator's choice": lambda: generator().choice(9, 4, replace=False, shuffle=False),
    "generator's dirichlet": lambda: generator().dirichlet(WEIGHTS, 2),
    "multivariate hypergeometric": lambda: generator().multivariate_hypergeometric([2, 3, 4], 5),
    "permuted": lambda: generator().permuted(POINTS, axis=0),
    "k-d tree": lambda: scipy.spatial.cKDTree(POINTS).query(POINTS[:2], k=3)[0],
    "k-d tree, pairs": lambda: scipy.spatial.cKDTree(POINTS).query_pairs(1.0, output_type="ndarray"),
    "Delaunay": lambda: scipy.spatial.Delaunay(POINTS).simplices,
    "linkage": lambda: scipy.cluster.hierarchy.linkage(POINTS),
    "B-spline": lambda: scipy.interpolate.make_interp_spline(np.arange(6.0), POINTS)(2.5),
    "regular grid": lambda: scipy.interpolate.RegularGridInterpolator((np.arange(6.0),), POINTS)([2.5]),
    "label": lambda: scipy.ndimage.label(POINTS > 0)[0],
    "assignment": lambda: scipy.optimize.linear_sum_assignment(POINTS)[1],
    "filter": lambda: scipy.signal.sosfilt(scipy.signal.butter(2, 0.1, output="sos"), POINTS[:, 0]),
    "shortest path": lambda: scipy.sparse.csgraph.shortest_path(np.abs(POINTS @ POINTS.T)),
    "rotation": lambda: scipy.spatial.transform.Rotation.from_rotvec([0.1, 0.2, 0.3]).as_matrix(),
    "Sobol": lambda: scipy.stats.qmc.Sobol(2, scramble=False).random(4),
    "tree": partial(TREE.tree_.predict, POINTS.astype(np.float32)),
    "decision path": lambda: PATH().toarray(),
    "sample": lambda: sample_without_replacement(10, 4, random_state=0),
    "hash": partial(murmurhash3_32, np.arange(3, dtype=np.int32)),
    "njit": lambda: fill(3),
    "njit, compiled meanwhile": lambda: scaled(2.0)(3),
    "numba.vectorize": lambda: shifted(POINTS),
}


def test_cythons_functions_are_named_as_compiled():
    with pytest.raises(TracerEscapeError, match=r"(?s)compiled code has no signature.*test_compiled_clients.py"):
        fnad.grad(lambda x: _chi2_kernel_fast(x, x, np.zeros((6, 6))))(np.abs(POINTS))


def of_pandas():
    pandas = pytest.importorskip("pandas")
    algos, hashtable, lib, window = [
        __import__(f"pandas._libs.{name}", fromlist=["_"])
        for name in ("algos", "hashtable", "lib", "window.aggregations")
    ]
    rows, objects = POINTS[:, 0].copy(), np.array([1.0, 2.0, None], dtype=object)
    starts, ends = np.arange(6), np.arange(6) + 1
    frame = pandas.DataFrame({"a": [1, 2, 1, 2, 3, 3], "b": POINTS[:, 0], "c": POINTS[:, 1]})
    compiled = (
        partial(algos.rank_1d, rows),
        partial(algos.kth_smallest, rows, 2),
        partial(algos.unique_deltas, starts),
        partial(hashtable.duplicated, starts % 3),
        partial(lib.maybe_convert_objects, objects[:2]),
        partial(window.roll_sum, rows, starts, ends, 1),
    )
    python = (
        lambda: frame.groupby("a").mean().to_numpy(),
        lambda: frame.rolling(2).sum().to_numpy()[1:],
        lambda: frame.merge(frame, on="a").to_numpy(),
        lambda: pandas.date_range("2020-01-01", periods=3).to_numpy().astype(int) % 1000,
        lambda: pandas.cut(frame["b"], 3, labels=False).to_numpy(),
    )
    return compiled, python


def check_client(client):
    expected = float(np.sum(client()))

    def f(x):
        u = np.zeros(3)
        u[0] = x[0]
        return np.sum(u) * np.sum(client())

    for _ in range(2):
        np.testing.assert_allclose(fnad.grad(f)(X), [expected, 0.0, 0.0], rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLIENTS)
def test_compiled_clients_compute_or_are_refused(name):
    check_client(CLIENTS[name])


@pytest.mark.filterwarnings("ignore")
def test_functions_of_pandas_compute_or_are_refused():
    compiled, python = of_pandas()
    for client in compiled:
        check_client(client)
    for client in python:
        with contextlib.suppress(FnadError):
            check_client(client)


# ---- whose call it is ------------------------------------------------------------------------------------------------


def in_second_run(look):
    """Return what `look()` returns in a run where NumPy makes traced arrays."""
    found = []

    def write(u, value):
        u[0] = value

    def f(x):
        u = np.zeros(3)
        write(u, x[0])
        found[:] = [look()]
        return np.sum(u)

    fnad.grad(f)(X)
    return found[0]


class Holder:
    np = np
    zeros = property(operator.attrgetter("np.zeros"))


def test_compiled_code_reads_the_functions_of_numpy():
    assert isinstance(in_second_run(lambda: operator.methodcaller("zeros", 3)(np)), fnad.trace.tracer.Tracer)
    for name in NEW:
        assert in_second_run(lambda name=name: operator.attrgetter(name)(np)) is vars(np)[name]
    assert in_second_run(lambda: Holder().zeros) is np.zeros


def imported():
    from numpy import array, zeros  # noqa: PLC0415
    from numpy.linalg import norm  # noqa: PLC0415

    return [zeros(2), array([1.0]), norm(zeros(2))]


def imported_here():
    import numpy  # noqa: PLC0415 ICN001

    return [numpy.zeros(2)]


def in_a_variable():
    make, tables = np.zeros, {"np": np, "make": np.full}
    return [make(*[2]), make(shape=2), tables["np"].zeros(2), tables["make"](2, 1.0), [np][0].zeros(2)]


@pytest.mark.parametrize(
    "make",
    [
        *(imported, imported_here, in_a_variable),
        lambda: [Holder.np.zeros(2), Holder().np.zeros(2), Holder().zeros(2), getattr(np, "zeros")(2)],  # noqa: B009
        lambda: [np.zeros(1) for _ in range(2)] + [*(np.ones(1) for _ in range(2))] + [*map(np.zeros, [1, 2])],
    ],
)
def test_user_code_makes_traced_arrays(make):
    assert all(isinstance(made, Tracer) for made in in_second_run(make))


def test_compiled_closures_are_called_again():
    compiled = fnad.jit(lambda x: x * fill(1)[0])
    for x in (1.0, 2.0):
        assert compiled(x) == 3.0 * x
    assert fnad.jit(lambda x: x + fill(1)[0])(1.0) == 4.0


# ---- errors that compiled code puts in the place of an escape --------------------------------------------------------


@pytest.mark.parametrize("transform", [fnad.jit, fnad.grad])
@pytest.mark.parametrize(
    "solve",
    [
        lambda x: scipy.optimize.broyden1(lambda y: y**3 - x, 1.0),
        lambda x: scipy.optimize.nnls(np.eye(1), [x])[0][0],
    ],
    ids=["broyden1", "nnls"],
)
def test_solvers_of_scipy(transform, solve):
    with pytest.raises(TracerEscapeError, match=r"has no (numbers while tracing|rule for traced values)"):
        transform(solve)(1.3)


def test_what_pandas_refuses_is_at_the_users_line():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"group": [0, 1, 0], "value": [1.0, 2.0, 3.0]})

    def sums(w):
        weighted = frame.assign(value=frame["value"].to_numpy() * w)
        return weighted.groupby("group")["value"].sum().to_numpy().sum()

    with pytest.raises(TypeError, match=r"(?s)called at test_compiled_clients.py:\d+ in sums: .*groupby.*np.bincount"):
        fnad.grad(sums)(2.0)
    assert fnad.grad(lambda w: np.bincount(frame["group"], frame["value"].to_numpy() * w).sum())(2.0) == 6
