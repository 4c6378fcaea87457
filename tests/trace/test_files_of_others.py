"""Test files of the standard library and of mpmath run converted, in a trace, and pass."""

import ast
import importlib.machinery
import importlib.util
import unittest
import warnings

import mpmath
import pytest

import fnad
from fnad.trace.conversion import with_hooks
from fnad.trace.rewriting import Hooked
from tests.together import some_of


class Converting(importlib.machinery.SourceFileLoader):
    """A loader that puts hooks into a whole module."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        data = self.get_data(path)
        own = compile(data, path, "exec", dont_inherit=True)
        return with_hooks(compile(Hooked().visit(ast.parse(data)), path, "exec", dont_inherit=True), own)


def module_of(name):
    """A module with hooks, made anew."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.origin:
        pytest.skip("this Python has no tests")
    loader = Converting(name, spec.origin)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, spec.origin, loader=loader))
    loader.exec_module(module)
    return module


def in_a_trace(run):
    """Run in a trace whose reads are recorded."""

    def traced(x):
        run()
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert fnad.jit(traced)(1.0) == 1


FILES = (
    "test_bisect",
    "test_contextlib",
    "test_decorators",
    "test_fractions",
    "test_patma",
    "test_property",
    "test_super",
)


@pytest.mark.parametrize("name", FILES)
def test_files_of_the_standard_library(name):
    module, results = module_of(f"test.{name}"), unittest.TestResult()
    in_a_trace(lambda: unittest.defaultTestLoader.loadTestsFromModule(module).run(results))
    assert results.testsRun > 10
    assert results.errors == results.failures == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_division", "test_interval"])
def test_files_of_mpmath(name):
    """Six of their tests, which are drawn."""
    module = module_of(f"mpmath.tests.{name}")
    tests = [test for key, test in vars(module).items() if key.startswith("test_")]
    assert len(tests) > 5

    def run():
        for test in some_of(tests, name, 6):
            mpmath.mp.prec = mpmath.iv.prec = 53
            mpmath.mp.pretty = mpmath.iv.pretty = False
            test()

    in_a_trace(run)
