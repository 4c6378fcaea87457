"""A backend of pymanopt: optimization on manifolds, with cost functions in plain NumPy.

    pip install pymanopt
    python examples/clients/pymanopt_fnad.py

`@pymanopt_fnad.function(manifold)` is used like `@pymanopt.function.autograd(manifold)`; `@pymanopt_fnad.jit(manifold)`
compiles the cost, its gradient and its products of Hessian and vector. Run as a script it solves three problems.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pymanopt
from pymanopt.autodiff import backend_decorator_factory
from pymanopt.autodiff.backends._backend import Backend
from pymanopt.manifolds import Grassmann, SpecialOrthogonalGroup, Sphere
from pymanopt.optimizers import TrustRegions

import fnad

Function = Callable[..., Any]


class FnadBackend(Backend):
    """What pymanopt asks for: values, gradients, and products of the Hessian and vectors, by position of argument."""

    def __init__(self, compiled: Callable[[Function], Function] = lambda f: f) -> None:
        super().__init__("fnad")
        self.compiled = compiled

    @staticmethod
    def is_available() -> bool:
        """Always, here."""
        return True

    def prepare_function(self, function: Function) -> Function:
        """The cost."""
        return self.compiled(function)

    def generate_gradient_operator(self, function: Function, num_arguments: int) -> Function:
        """The gradient, one array for each argument."""
        gradient = self.compiled(fnad.grad(function, argnums=tuple(range(num_arguments))))
        return lambda *args: conjugated(gradient(*args))

    def generate_hessian_operator(self, function: Function, num_arguments: int) -> Function:
        """The derivative of the gradient along vectors, which follow the arguments.

        That is the gradient of the slope along them. It is taken in the vectors too, since a trace is used again for
        other values of what is differentiated.
        """
        slope = fnad.grad(lambda args, vectors: fnad.jvp(function, args, vectors)[1], argnums=(0, 1))
        product = self.compiled(lambda args, vectors: slope(args, vectors)[0])
        return lambda *args: conjugated(product(args[:num_arguments], args[num_arguments:]))


def conjugated(arrays: Sequence[Any]) -> Any:
    """The direction of steepest ascent of a function of complex arrays; one array stands for itself."""
    found = [np.conj(array) for array in arrays]
    return found[0] if len(found) == 1 else found


function = backend_decorator_factory(FnadBackend)
jit = backend_decorator_factory(partial(FnadBackend, fnad.jit))


# ---- three problems --------------------------------------------------------------------------------------------------


def dominant_eigenvector(decorator: Function, matrix: Any) -> Any:
    """The unit vector that a symmetric matrix stretches most."""
    manifold = Sphere(len(matrix))

    @decorator(manifold)
    def cost(x: Any) -> Any:
        return -x.T @ matrix @ x

    return solution(manifold, cost, matrix[0] / np.linalg.norm(matrix[0]))


def principal_components(decorator: Function, samples: Any, k: int) -> Any:
    """The projection on the k-dimensional subspace nearest to the samples."""
    manifold = Grassmann(samples.shape[1], k)

    @decorator(manifold)
    def cost(w: Any) -> Any:
        return np.linalg.norm(samples - samples @ w @ w.T) ** 2

    found = solution(manifold, cost, np.linalg.qr(samples[:k].T)[0])
    return found @ found.T


def procrustes(decorator: Function, a: Any, b: Any) -> Any:
    """The rotation that takes a as near to b as it gets."""
    manifold = SpecialOrthogonalGroup(len(a))

    @decorator(manifold)
    def cost(rotation: Any) -> Any:
        return np.sum((rotation @ a - b) ** 2)

    return solution(manifold, cost, np.eye(len(a)))


def solution(manifold: Any, cost: Any, start: Any) -> Any:
    """The minimum, by a method of second order."""
    problem = pymanopt.Problem(manifold, cost)
    return TrustRegions(verbosity=0, min_gradient_norm=1e-9).run(problem, initial_point=start).point


def main() -> None:
    """Solve the three problems, and compare with what linear algebra knows."""
    draw = np.random.default_rng(0).normal
    matrix, samples, a = draw(size=(20, 20)), draw(size=(100, 6)) * np.arange(1, 7), draw(size=(3, 30))
    turn = np.linalg.qr(draw(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    matrix = matrix + matrix.T
    for name, decorator in [("plain", function), ("jit", jit)]:
        vector = dominant_eigenvector(decorator, matrix)
        top = np.linalg.eigh(matrix)[1][:, -1]
        print(f"{name:6} dominant eigenvector: error {1 - abs(vector @ top):.1e}")
        axes = np.linalg.svd(samples)[2][:2]
        plane = principal_components(decorator, samples, 2)
        print(f"{name:6} principal components: error {np.abs(plane - axes.T @ axes).max():.1e}")
        print(f"{name:6} Procrustes: error {np.abs(procrustes(decorator, a, turn @ a) - turn).max():.1e}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
