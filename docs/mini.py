"""A small fnad that can be read in a quarter of an hour: trace, program, joint program, twelve rules, interpreter.

Run it with `python docs/mini.py`. Each part names the file of fnad that does the same for NumPy as a whole.

    Python function ──trace──▶ Program ──joint──▶ Program ──evaluate──▶ arrays
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fnad

# ---- the language (fnad/ir/program.py) ----------------------------------------------------------------------------
#
# A program is a list of equations in which each variable is assigned once. Its types are the shapes of arrays of
# doubles. An equation names a primitive, so transforms and executors need one entry a primitive and nothing else.


@dataclass(frozen=True, eq=False)
class Var:
    """A value that a program computes; two variables are equal if they are one object."""

    shape: tuple[int, ...]


Atom = Var | float  # an operand: a variable or a number


@dataclass(frozen=True)
class Equation:
    """`result = primitive(operands) params`."""

    primitive: Primitive
    operands: tuple[Atom, ...]
    params: tuple[tuple[str, Any], ...]
    result: Var


@dataclass(frozen=True)
class Program:
    """A function from arrays to arrays, in single assignment."""

    inputs: tuple[Var, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]

    def __str__(self) -> str:
        """The text of a program, a line an equation."""
        names: dict[Var, str] = {}
        fresh = (f"v{i}" for i in itertools.count())

        def name(atom: Atom) -> str:
            if isinstance(atom, Var) and atom not in names:
                names[atom] = next(fresh)
            return names[atom] if isinstance(atom, Var) else repr(atom)

        def typed(var: Var) -> str:
            return f"{name(var)}: f64[{','.join(map(str, var.shape))}]"

        lines = [f"({', '.join(map(typed, self.inputs))}) {{"]
        for equation in self.equations:
            operands = ", ".join(map(name, equation.operands))
            params = "".join(f" {key}={value}" for key, value in equation.params)
            lines.append(f"  {typed(equation.result)} = {equation.primitive.name}({operands}){params}")
        return "\n".join([*lines, f"  return {', '.join(map(name, self.outputs))}", "}"])


# ---- primitives (fnad/ops/) ---------------------------------------------------------------------------------------
#
# A primitive is one record: its meaning in NumPy, the shape of its result, its derivative. A primitive is strict:
# both operands of `add` have one shape. Broadcasts are equations of their own, whose pullback is a sum, so no other
# rule has to undo one.


@dataclass(frozen=True, eq=False)
class Primitive:
    """An operation: its evaluation, the shape of its result, and its pullback.

    `pullback(ct, result, *operands, **params)` returns the cotangents of the operands, for the cotangent of the result.
    It computes with traced values, so it writes equations, and has derivatives itself.
    """

    name: str
    evaluate: Callable[..., Any]
    shape: Callable[..., tuple[int, ...]]
    pullback: Callable[..., tuple[Any, ...]]

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """A new equation of the trace under way, or a number if no operand is traced."""
        tracers = [x for x in operands if isinstance(x, Tracer)]
        if not tracers:
            return self.evaluate(*operands, **params)
        builder = tracers[0].builder
        if any(x.builder is not builder for x in tracers):
            raise TypeError("a value of another trace: give it to the inner function as an argument")
        atoms = tuple(x.var if isinstance(x, Tracer) else float(x) for x in operands)
        shapes = [x.shape if isinstance(x, Tracer) else () for x in operands]
        return builder.equation(self, atoms, tuple(params.items()), self.shape(*shapes, **params))


def same(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an elementwise result: all shapes are equal."""
    assert len(set(shapes)) == 1, f"a strict primitive received the shapes {shapes}"
    return shapes[0]


add = Primitive("add", np.add, same, lambda ct, y, a, b: (ct, ct))
mul = Primitive("mul", np.multiply, same, lambda ct, y, a, b: (ct * b, ct * a))
neg = Primitive("neg", np.negative, same, lambda ct, y, a: (-ct,))
div = Primitive("div", np.divide, same, lambda ct, y, a, b: (ct / b, -ct * y / b))
exp = Primitive("exp", np.exp, same, lambda ct, y, a: (ct * y,))
log = Primitive("log", np.log, same, lambda ct, y, a: (ct / a,))
sin = Primitive("sin", np.sin, same, lambda ct, y, a: (ct * np.cos(a),))
cos = Primitive("cos", np.cos, same, lambda ct, y, a: (-ct * np.sin(a),))
tanh = Primitive("tanh", np.tanh, same, lambda ct, y, a: (ct * (1.0 - y * y),))
total = Primitive("sum", np.sum, lambda shape: (), lambda ct, y, a: (broadcast(ct, shape=a.shape),))
broadcast = Primitive("broadcast", np.broadcast_to, lambda _, shape: shape, lambda ct, y, a, shape: (total(ct),))
matvec = Primitive("matvec", lambda m, v: m @ v, lambda m, v: m[:1], lambda ct, y, m, v: (outer(ct, v), vecmat(ct, m)))
vecmat = Primitive("vecmat", lambda v, m: v @ m, lambda v, m: m[1:], lambda ct, y, v, m: (matvec(m, ct), outer(v, ct)))
outer = Primitive("outer", np.outer, lambda a, b: a + b, lambda ct, y, a, b: (matvec(ct, b), vecmat(a, ct)))


# ---- tracing (fnad/trace/, fnad/numpy/) ---------------------------------------------------------------------------
#
# A function is run once on tracers. NumPy's protocols lead each call to the primitive, and the builder records it.
# `__array__` raises, because a tracer that became an ordinary array would be lost in silence.

RULES = {
    "add": add,
    "multiply": mul,
    "negative": neg,
    "divide": div,
    "exp": exp,
    "log": log,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
}
UFUNCS: dict[Any, Primitive] = {getattr(np, name): primitive for name, primitive in RULES.items()}


class Builder:
    """The equations of a program under construction; an equation that is there already is not made again."""

    def __init__(self) -> None:
        self.equations: list[Equation] = []
        self.known: dict[Any, Var] = {}

    def equation(self, primitive: Primitive, operands: tuple[Atom, ...], params: Any, shape: tuple[int, ...]) -> Tracer:
        key = primitive, operands, params
        if key not in self.known:
            self.known[key] = Var(shape)
            self.equations.append(Equation(primitive, operands, params, self.known[key]))
        return Tracer(self, self.known[key])


class Tracer(np.lib.mixins.NDArrayOperatorsMixin):
    """The stand-in for an array while a function is traced."""

    def __init__(self, builder: Builder, var: Var) -> None:
        self.builder, self.var = builder, var

    @property
    def shape(self) -> tuple[int, ...]:
        return self.var.shape

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a traced value has no numbers: use NumPy's functions on it")

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        if ufunc is np.subtract:
            return operands[0] + -operands[1]
        if ufunc is np.matmul:
            return (matvec if len(operands[0].shape) == 2 else vecmat)(*operands)
        if ufunc not in UFUNCS or method != "__call__" or options:
            raise NotImplementedError(f"np.{ufunc.__name__} has no rule here")
        shape = np.broadcast_shapes(*map(shape_of, operands))
        full = [x if shape_of(x) == shape else self.widened(x, shape) for x in operands]
        return UFUNCS[ufunc](*full)

    def widened(self, x: Any, shape: tuple[int, ...]) -> Any:
        """The number or scalar `x` in a larger shape: an equation, where NumPy broadcasts in silence."""
        assert shape_of(x) == (), "only scalars broadcast here"
        atom = x.var if isinstance(x, Tracer) else float(x)
        return self.builder.equation(broadcast, (atom,), (("shape", shape),), shape)

    def __array_function__(self, function: Any, _: Any, args: Any, kwargs: Any) -> Any:
        if function is not np.sum or kwargs:
            raise NotImplementedError(f"np.{function.__name__} has no rule here")
        return total(*args)


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array, a number or a traced value."""
    return x.shape if isinstance(x, Tracer) else np.shape(x)


def trace(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Program:
    """The program of a function for arguments of some shapes.

    >>> print(trace(lambda x: np.sum(np.exp(x) * np.sin(x)), (3,)))
    (v0: f64[3]) {
      v1: f64[3] = exp(v0)
      v2: f64[3] = sin(v0)
      v3: f64[3] = mul(v1, v2)
      v4: f64[] = sum(v3)
      return v4
    }
    """
    builder, inputs = Builder(), tuple(Var(shape) for shape in shapes)
    returned = f(*(Tracer(builder, var) for var in inputs))
    outputs = returned if isinstance(returned, tuple) else (returned,)
    atoms = tuple(y.var if isinstance(y, Tracer) else float(y) for y in outputs)
    return Program(inputs, read(builder.equations, atoms), atoms)


def read(equations: Sequence[Equation], outputs: Sequence[Atom]) -> tuple[Equation, ...]:
    """The equations that the outputs depend on (fnad/transforms/dce.py)."""
    needed, kept = set(outputs), []
    for equation in reversed(equations):
        if equation.result in needed:
            needed.update(equation.operands)
            kept.append(equation)
    return tuple(reversed(kept))


# ---- reverse mode (fnad/transforms/joint.py) ----------------------------------------------------------------------


def inline(program: Program, operands: Sequence[Any]) -> tuple[dict[Atom, Any], list[Any]]:
    """Write a program's equations into the trace of the operands; return all values, and the outputs."""
    values: dict[Atom, Any] = dict(zip(program.inputs, operands, strict=True))
    for equation in program.equations:
        taken = [values.get(atom, atom) for atom in equation.operands]
        values[equation.result] = equation.primitive(*taken, **dict(equation.params))
    return values, [values.get(atom, atom) for atom in program.outputs]


def joint(program: Program) -> Program:
    """The program of value and gradients of a scalar function: the forward equations, then the pullbacks in reverse.

    A variable that has no cotangent when its equation is reached does not affect the result, and gets no equation.

    >>> print(joint(trace(lambda x: np.sum(np.sin(x)), (3,))))
    (v0: f64[3]) {
      v1: f64[3] = sin(v0)
      v2: f64[] = sum(v1)
      v3: f64[3] = broadcast(1.0) shape=(3,)
      v4: f64[3] = cos(v0)
      v5: f64[3] = mul(v3, v4)
      return v2, v5
    }
    """

    def both(*operands: Tracer) -> tuple[Any, ...]:
        values, (value,) = inline(program, operands)
        cotangents: dict[Atom, Any] = {program.outputs[0]: 1.0}
        for equation in reversed(program.equations):
            ct = cotangents.get(equation.result)
            if ct is None:
                continue
            taken = [values.get(atom, atom) for atom in equation.operands]
            if not isinstance(ct, Tracer) and equation.primitive is total:  # the number 1, at the start
                parts = (taken[0].widened(ct, taken[0].shape),)
            else:
                parts = equation.primitive.pullback(ct, values[equation.result], *taken, **dict(equation.params))
            for atom, part in zip(equation.operands, parts, strict=True):
                if isinstance(atom, Var):
                    cotangents[atom] = cotangents[atom] + part if atom in cotangents else part
        return value, *(cotangents.get(v, x * 0.0) for v, x in zip(program.inputs, operands, strict=True))

    return trace(both, *(var.shape for var in program.inputs))


# ---- the executor (fnad/backends/reference.py) --------------------------------------------------------------------


def evaluate(program: Program, *arrays: Any) -> list[Any]:
    """The results of a program, equation by equation in NumPy; fnad compiles hot programs to native code instead."""
    return inline(program, [np.asarray(x, dtype=float) for x in arrays])[1]


def value_and_grad(f: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """A function that returns the value of `f` and its gradients in all arguments.

    On traced values it writes its equations into the trace under way, so derivatives nest.
    """

    def derivative(*args: Any) -> tuple[Any, ...]:
        program = joint(trace(f, *map(shape_of, args)))
        is_traced = any(isinstance(x, Tracer) for x in args)
        return tuple(inline(program, args)[1] if is_traced else evaluate(program, *args))

    return derivative


def grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a scalar function in its first argument.

    >>> f = lambda x: np.sin(x) * np.exp(x)
    >>> print(f"{grad(f)(1.0):.10f} {np.exp(1.0) * (np.sin(1.0) + np.cos(1.0)):.10f}")
    3.7560492271 3.7560492271
    >>> print(f"{grad(grad(f))(1.0):.10f} {2 * np.exp(1.0) * np.cos(1.0):.10f}")
    2.9373878798 2.9373878798
    """
    return lambda *args: value_and_grad(f)(*args)[1]


# ---- a run: a network of one layer, beside fnad -------------------------------------------------------------------


def loss(w: Any, x: Any, y: Any) -> Any:
    """The squared error of one layer."""
    error = np.tanh(w @ x) - y
    return np.sum(error * error)


def main() -> None:
    """Print the joint program of a loss, and compare its gradient with fnad's."""
    rng = np.random.default_rng(0)
    w, x, y = rng.standard_normal((2, 3)), rng.standard_normal(3), rng.standard_normal(2)
    print(joint(trace(loss, w.shape, x.shape, y.shape)))
    difference = grad(loss)(w, x, y) - fnad.grad(loss)(w, x, y)
    assert np.abs(difference).max() < 1e-14
    print("the gradient is fnad's")


if __name__ == "__main__":
    main()
