"""Random Python functions give the same values plain, converted, in a trace, and of traced arguments."""

import importlib.util
import warnings
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.errors import ArgumentTypeError
from fnad.trace.conversion import own_function
from fnad.trace.hooks import converted
from tests.random_functions import random_module

POINTS = (0.7, -0.3), (-1.1, 0.4)


def imported(text, folder):
    """The function of a module with this text."""
    name = f"random{len(list(folder.iterdir()))}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def check(text, folder):
    f = imported(text, folder)
    twin = converted(f)
    assert twin is not f
    assert own_function(twin) is f
    expected = [f(*point) for point in POINTS]
    assert [repr(twin(*point)) for point in POINTS] == [repr(value) for value in expected]
    found = []
    assert fnad.jit(lambda x: found.append(f(*POINTS[0])) or x)(1.0) == 1
    assert repr(found[0]) == repr(expected[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of paths that are traced anew
        fast = fnad.jit(f)
        assert [fast(*point) for point in POINTS] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        value, slope = fnad.jvp(lambda x: f(x, POINTS[0][1]), (POINTS[0][0],), (1.0,))
    assert value == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
    assert np.isfinite(slope)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("random")


@pytest.mark.slow
@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_random_functions_compute_as_python(folder, seed):
    text = random_module(Random(seed))
    try:
        check(text, folder)
    except Exception as error:
        error.add_note(text)
        raise


async def later(x):
    return x


async def values(x):
    yield x


@pytest.mark.parametrize("f", [later, values])
@pytest.mark.filterwarnings("ignore:coroutine 'later' was never awaited:RuntimeWarning")
def test_asynchronous_functions_are_refused_by_name(f):
    for transform in (fnad.grad, fnad.jit):
        with pytest.raises(ArgumentTypeError, match=rf"{f.__name__}\(...\) is of type (coroutine|async_generator)"):
            transform(f)(1.5)
