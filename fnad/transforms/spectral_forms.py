"""The places where a program forms V φ(w) Vᴴ of the eigenvalues and eigenvectors (w, V) of a Hermitian matrix.

One walk over the equations records the form of each value that has one:

    Spectrum      φ(w): a function of each eigenvalue, along one axis, and constant along all others but the batch
    Diagonal      diag(φ(w))
    Vectors       V, Vᵀ or its conjugate, with columns scaled by φ(w)

A product of two `Vectors` over the eigenvalues is V φ(w) Vᴴ. The other operands of φ must be the same for all
eigenvalues: a number, or one number for each matrix of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import NamedTuple, TypeAlias

from fnad.ir.primitive import Primitive, Scalar
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.types import Shape, is_complex
from fnad.ops.arithmetic import div, mul, neg, strong_mul
from fnad.ops.contraction import dot_general
from fnad.ops.conversion import complex_, convert, imag, real
from fnad.ops.eigenvalues import eigh, eigvalsh
from fnad.ops.shape import broadcast_in_dim, pad, reshape, transpose


class Decomposition(NamedTuple):
    """The decomposed matrix; two equations on the same one have the same eigenvalues."""

    matrix: Atom
    uplo: str

    @property
    def batch(self) -> int:
        """The number of axes before those of the matrices."""
        return self.matrix.aval.ndim - 2


class Spectrum(NamedTuple):
    """A function of each eigenvalue, along `axis`."""

    of: Decomposition
    axis: int


class Diagonal(NamedTuple):
    """The diagonal matrix of the function `factor` of each eigenvalue."""

    of: Decomposition
    factor: Factor


class Vectors(NamedTuple):
    """Eigenvectors or their conjugates, indexed by `axis`, one of the last two axes, times `factors`."""

    of: Decomposition
    axis: int
    conjugate: bool
    factors: tuple[Factor, ...] = ()


class Factor(NamedTuple):
    """A value of the form `Spectrum` that multiplies or divides eigenvectors."""

    value: Var
    spectrum: Spectrum
    divides: bool = False


class SpectralFunction(NamedTuple):
    """A value V φ Vᴴ, where φ is the product of the factors, or its transpose if `transposed`."""

    value: Var
    of: Decomposition
    factors: tuple[Factor, ...]
    transposed: bool


Form: TypeAlias = Spectrum | Diagonal | Vectors


class Forms:
    """The forms of the values of a program, and its spectral functions."""

    def __init__(self, program: Program) -> None:
        self.found: dict[Var, Form] = {}
        self.values: dict[Decomposition, list[Var]] = {}
        self.definitions: dict[Var, Equation] = {}
        self.functions: list[SpectralFunction] = []
        for equation in program.equations:
            self._enter(equation)

    def _enter(self, equation: Equation) -> None:
        if equation.primitive in (eigh, eigvalsh) and equation.results[0].aval.shape[-1] > 1:
            self._enter_decomposition(equation)
        elif len(equation.results) == 1:
            form = self._form(equation)
            if form is not None:
                self.found[equation.results[0]] = form
        self.definitions.update(dict.fromkeys(equation.results, equation))

    def _enter_decomposition(self, equation: Equation) -> None:
        of = Decomposition(equation.operands[0], equation.params["uplo"])
        values, *vectors = equation.results
        self.values.setdefault(of, []).append(values)
        self.found[values] = Spectrum(of, of.batch)
        self.found.update({v: Vectors(of, of.batch + 1, conjugate=False) for v in vectors})

    def _form(self, equation: Equation) -> Form | None:
        forms = [self._of(atom) for atom in equation.operands]
        if not any(forms):
            return self._conjugated(equation) if equation.primitive is complex_ else None
        rule = RULES.get(equation.primitive)
        found = rule(self, equation, forms) if rule else None
        return found or self._elementwise(equation, forms)

    def _of(self, atom: Atom) -> Form | None:
        return self.found.get(atom) if isinstance(atom, Var) else None

    def _defined_by(self, atom: Atom, primitive: Primitive) -> Equation | None:
        equation = self.definitions.get(atom) if isinstance(atom, Var) else None
        return equation if equation is not None and equation.primitive is primitive else None

    # ---- functions of each eigenvalue ----------------------------------------------------------------------------

    def _elementwise(self, equation: Equation, forms: list[Form | None]) -> Form | None:
        """The form of an elementwise function of functions of each eigenvalue."""
        kinds = set(forms) - {None}
        spectrum = kinds.pop()
        if kinds or not isinstance(spectrum, Spectrum) or not isinstance(equation.primitive.lower, Scalar):
            return None
        others = [atom for atom, form in zip(equation.operands, forms, strict=True) if form is None]
        return spectrum if all(self._is_uniform(atom, spectrum.of.batch) for atom in others) else None

    def _is_uniform(self, atom: Atom, batch: int) -> bool:
        """True if a value is constant along all axes but the first `batch`."""
        if isinstance(atom, Literal):
            return True
        equation = self.definitions.get(atom)
        if equation is None:
            return False
        if equation.primitive is broadcast_in_dim:
            (operand,) = equation.operands
            pairs = zip(equation.params["dims"], operand.aval.shape, strict=True)
            return all(axis < batch or n == 1 for axis, n in pairs)
        return isinstance(equation.primitive.lower, Scalar) and all(
            self._is_uniform(operand, batch) for operand in equation.operands
        )

    # ---- eigenvectors --------------------------------------------------------------------------------------------

    def _conjugated(self, equation: Equation) -> Form | None:
        """The form of complex(real(x), neg(imag(x)))."""
        upper, lower = (self._defined_by(atom, p) for atom, p in zip(equation.operands, (real, neg), strict=True))
        lower = None if lower is None else self._defined_by(lower.operands[0], imag)
        if upper is None or lower is None or upper.operands != lower.operands:
            return None
        form = self._of(upper.operands[0])
        if not isinstance(form, Vectors) or form.factors:
            return None
        return form._replace(conjugate=not form.conjugate)

    def scaled(self, equation: Equation, forms: list[Form | None]) -> Form | None:
        """The form of eigenvectors multiplied or divided by a function of each eigenvalue."""
        pairs = list(zip(equation.operands, forms, strict=True))
        for (_, vectors), (factor, spectrum) in (pairs, pairs[::-1]):
            if isinstance(vectors, Vectors) and isinstance(spectrum, Spectrum) and isinstance(factor, Var):
                divides = equation.primitive is div
                is_right_way = not divides or pairs[0][1] is vectors
                if is_right_way and spectrum == Spectrum(vectors.of, vectors.axis):
                    return vectors._replace(factors=(*vectors.factors, Factor(factor, spectrum, divides)))
        return None

    def product(self, equation: Equation, forms: list[Form | None]) -> Form | None:
        """The form of a product with a diagonal matrix; a product over the eigenvalues is recorded."""
        x, y = forms
        if x is None or y is None or x.of != y.of or not _pairs_batch(equation, x.of.batch):
            return None
        axes = tuple(axis for side in equation.params["contract"] for axis in side)
        match x, y:
            case Vectors(), Vectors():
                self._enter_product(equation, x, y, axes)
            case Vectors(), Diagonal() if axes[0] == x.axis:
                return x._replace(axis=x.of.batch + 1, factors=(*x.factors, y.factor))
            case Diagonal(), Vectors() if axes[1] == y.axis:
                return y._replace(axis=y.of.batch, factors=(*y.factors, x.factor))
            case _:
                pass
        return None

    def _enter_product(self, equation: Equation, x: Vectors, y: Vectors, axes: tuple[int, ...]) -> None:
        is_real = not is_complex(x.of.matrix.aval.dtype)
        if axes == (x.axis, y.axis) and (is_real or x.conjugate != y.conjugate):
            transposed = x.conjugate and not is_real
            (value,) = equation.results
            self.functions.append(SpectralFunction(value, x.of, (*x.factors, *y.factors), transposed))

    # ---- the same elements in other places -----------------------------------------------------------------------

    def converted(self, equation: Equation, forms: list[Form | None]) -> Form | None:
        """The form of eigenvectors in another dtype."""
        return forms[0] if isinstance(forms[0], Vectors) else None

    def permuted(self, equation: Equation, forms: list[Form | None]) -> Form | None:
        """The form of a transpose that leaves the batch in place."""
        (form,), permutation = forms, equation.params["permutation"]
        if form is None or isinstance(form, Diagonal) or permutation[: form.of.batch] != _first(form.of.batch):
            return None
        return form._replace(axis=permutation.index(form.axis))

    def broadcast(self, equation: Equation, forms: list[Form | None]) -> Form | None:
        """The form of eigenvalues, repeated along new axes."""
        (form,), dims = forms, equation.params["dims"]
        if not isinstance(form, Spectrum):
            return None
        batch, shape = form.of.batch, equation.operands[0].aval.shape
        stays = dims[:batch] == _first(batch) and equation.params["shape"][:batch] == shape[:batch]
        return form._replace(axis=dims[form.axis]) if stays else None

    def reshaped(self, equation: Equation, forms: list[Form | None]) -> Form | None:
        """The form of eigenvalues with added axes of size 1, or of a diagonal matrix made by `pad`."""
        (form,), shape = forms, equation.params["shape"]
        if isinstance(form, Diagonal):
            return form if shape == form.of.matrix.aval.shape else None
        if not isinstance(form, Spectrum):
            return None
        axis = _axis_after(equation.operands[0].aval.shape, form.axis, shape, form.of.batch)
        return None if axis is None else form._replace(axis=axis)

    def padded(self, equation: Equation, forms: list[Form | None]) -> Form | None:
        """The form of eigenvalues n zeros apart: the elements of a diagonal matrix."""
        (form,), (operand,), params = forms, equation.operands, equation.params
        if not isinstance(form, Spectrum) or not isinstance(operand, Var) or form.axis != form.of.batch:
            return None
        apart = (*[0] * form.axis, operand.aval.shape[form.axis])
        is_diagonal = not any((*params["low"], *params["high"])) and params["interior"] == apart
        return Diagonal(form.of, Factor(operand, form)) if is_diagonal else None


RuleOfForms: TypeAlias = Callable[[Forms, Equation, list[Form | None]], Form | None]

RULES: Mapping[Primitive, RuleOfForms] = {
    mul: Forms.scaled,
    strong_mul: Forms.scaled,
    div: Forms.scaled,
    dot_general: Forms.product,
    convert: Forms.converted,
    transpose: Forms.permuted,
    broadcast_in_dim: Forms.broadcast,
    reshape: Forms.reshaped,
    pad: Forms.padded,
}


def _first(n: int) -> tuple[int, ...]:
    return tuple(range(n))


def _pairs_batch(equation: Equation, batch: int) -> bool:
    """True if a product sums over one axis, for each element of the batch."""
    return equation.params["batch"] == (_first(batch), _first(batch)) and len(equation.params["contract"][0]) == 1


def _axis_after(shape: Shape, axis: int, other: Shape, batch: int) -> int | None:
    """The position of an axis after a reshape that merges neither it nor the batch with other axes."""
    if other[:batch] != shape[:batch]:
        return None
    before = prod(shape[:axis])
    places = [i for i, n in enumerate(other) if n == shape[axis] and prod(other[:i]) == before]
    return places[-1] if places else None


def parameters(forms: Forms, function: SpectralFunction) -> tuple[Var, ...]:
    """The operands of φ other than the eigenvalues."""
    return tuple(dict.fromkeys(var for factor in function.factors for var in _read(forms, factor.value)))


def _read(forms: Forms, value: Var) -> Iterator[Var]:
    if value not in forms.found:
        yield value
    elif forms.definitions[value].primitive not in (eigh, eigvalsh):
        for operand in forms.definitions[value].operands:
            if isinstance(operand, Var):
                yield from _read(forms, operand)
