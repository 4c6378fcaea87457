"""A program as C99: its kernels as static functions, and the function that runs them in their order.

Statements are those of the kernels, so the numbers are those of native code up to the rounding of the C compiler's
functions. Compilers need `-fwrapv`, because integers wrap, and `-ffp-contract=off`; `-fopenmp-simd` vectorises sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

from fnad.backends.standalone import c_libraries
from fnad.backends.standalone.program import NO_SIZE, Standalone, Variant
from fnad.errors import LoweringError
from fnad.ir.size import is_size
from fnad.ir.types import Aval
from fnad.kernel import statements as code
from fnad.kernel.liveness import used_outside
from fnad.kernel.python_source import inlined, renumbered
from fnad.scalar.operation import BOOL, Dtype, Kind, Pointer
from fnad.scalar.operations import BINARY, DTYPES

TYPES = {
    **{f"{kind}{size}": f"{'u' * (kind == 'u')}int{8 * size}_t" for kind in "iu" for size in (1, 2, 4, 8)},
    "b1": "bool",
    "f4": "float",
    "f8": "double",
    "c8": "float complex",
    "c16": "double complex",
}
TRIGONOMETRIC = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
EXPONENTIAL = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "erf", "erfc", "hypot")
ROUNDING = ("floor", "ceil", "trunc", "rint", "copysign", "nextafter", "fmod", "fmin", "fmax")
FUNCTIONS = {
    **{name: name for name in (*TRIGONOMETRIC, *EXPONENTIAL, *ROUNDING)},
    **{f"arc{name}": f"a{name}" for name in TRIGONOMETRIC},
    "arctan2": "atan2",
    "power": "pow",
    "abs": "fabs",
}
"""The functions of <math.h> on f64, by the names of operations; those on f32 end in f."""

COMPLEX_FUNCTIONS = {
    **{name: f"c{name}" for name in (*TRIGONOMETRIC, "exp", "log", "sqrt", "abs")},
    **{f"arc{name}": f"ca{name}" for name in TRIGONOMETRIC},
    "power": "cpow",
    "real": "creal",
    "imag": "cimag",
    "conjugate": "conj",
}
IN_C = ("+", "-", "*", "/", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=")
OPERATORS = {"accumulate": "+"} | {BINARY[symbol].name: symbol for symbol in IN_C}
TESTS = {"isnan", "isinf", "isfinite", "signbit"}

HELPERS = {
    "strong_multiply": "{t} {n}({t} ct, {t} partial) {{ return ct != 0 ? ct * partial : 0; }}",
    "minimum": "{t} {n}({t} a, {t} b) {{ const {t} least = a < b ? a : b; return a != a ? a : least; }}",
    "maximum": "{t} {n}({t} a, {t} b) {{ const {t} most = a > b ? a : b; return a != a ? a : most; }}",
    "ldexp": "{t} {n}({t} x, int64_t e) {{ return ldexp(x, e < -9999 ? -9999 : e > 9999 ? 9999 : (int)e); }}",
    "sign": "{t} {n}({t} x) {{ return x > 0 ? 1 : x < 0 ? -1 : x; }}",
    "remainder": """\
{t} {n}({t} a, {t} b) {{
    if (b == 0) return NAN;
    const {t} rest = {fmod}(a, b);
    if (rest == 0) return {copysign}(0, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
}}""",
    "floor_divide": """\
{t} {n}({t} a, {t} b) {{
    const {t} ratio = a / b;
    if (b == 0) return ratio;
    const {t} rest = {fmod}(a, b);
    {t} near = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) near -= 1;
    if (near == 0) return {copysign}(0, ratio);
    const {t} whole = {floor}(near);
    return near - whole > ({t})0.5 ? whole + 1 : whole;
}}""",
    "sech2": """\
{t} {n}({t} x) {{
    const {t} e = {exp}(-2 * {fabs}(x));
    return 4 * e / ((1 + e) * (1 + e));
}}""",
    "exp_high": """\
{t} {n}({t} x) {{
    const double root = exp(0.5 * x) * 0x1p50;
    return x < -600 ? root * root : exp(x) * 0x1p100;
}}""",
    "exp_low": """\
{t} {n}({t} x) {{
    const double whole = exp(x) * 0x1p100;
    return whole - ({t})whole;
}}""",
    "muladd": "{t} {n}({t} x, {t} y, {t} z) {{ return x * y + z; }}",
    "compensated_add": """\
void {n}({t} *total, {t} *rest, {t} value) {{
    const {t} new = *total + value;
    if (isfinite(new)) {{
        const {t} seen = new - *total;
        *rest += (*total - (new - seen)) + (value - seen);
    }}
    *total = new;
}}""",
}
"""Functions of floating-point numbers of type t that C lacks; n is the name with the dtype."""

INTEGER_HELPERS = {
    "strong_multiply": HELPERS["strong_multiply"],
    **dict.fromkeys(("minimum", "fmin"), "{t} {n}({t} a, {t} b) {{ return a < b ? a : b; }}"),
    **dict.fromkeys(("maximum", "fmax"), "{t} {n}({t} a, {t} b) {{ return a > b ? a : b; }}"),
    "sign": "{t} {n}({t} x) {{ return x > 0 ? 1 : x == 0 ? 0 : -1; }}",
    "abs": "{t} {n}({t} x) {{ return x < 0 ? -x : x; }}",
    "floor_divide": """\
{t} {n}({t} a, {t} b) {{
    if (b == 0) return 0;
    if (b == ({t})-1) return ({t})-1 < 0 ? -a : a == b;
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}}""",
    "remainder": """\
{t} {n}({t} a, {t} b) {{
    if (b == 0 || (b == ({t})-1 && ({t})-1 < 0)) return 0;
    const {t} rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}}""",
    "fmod": "{t} {n}({t} a, {t} b) {{ return b == 0 || (b == ({t})-1 && ({t})-1 < 0) ? 0 : a % b; }}",
    "power": """\
{t} {n}({t} base, {t} exponent) {{
    {t} product = 1;
    for (; exponent > 0; exponent >>= 1) {{
        if (exponent & 1) product *= base;
        base *= base;
    }}
    return product;
}}""",
    "left_shift": "{t} {n}({t} a, {t} b) {{ return 0 <= b && b < ({t})(8 * sizeof a) ? ({t})((uint64_t)a << b) : 0; }}",
    "right_shift": "{t} {n}({t} a, {t} b) {{ return 0 <= b && b < ({t})(8 * sizeof a) ? a >> b : a < 0 ? -1 : 0; }}",
}
COMPLEX_HELPERS = {
    "strong_multiply": HELPERS["strong_multiply"],
    "make_complex": """\
{t} complex {n}({t} re, {t} im) {{
    union {{ {t} part[2]; {t} complex z; }} made = {{{{re, im}}}};
    return made.z;
}}""",
    "divide": """\
{t} {n}({t} a, {t} b) {{
    const {r} re = {creal}(b), im = {cimag}(b);
    if (re == 0 && im == 0) return {creal}(a) / {fabs}(re) + {cimag}(a) / {fabs}(re) * I;
    if ({fabs}(re) >= {fabs}(im)) {{
        const {r} ratio = im / re, scale = 1 / (re + im * ratio);
        return ({creal}(a) + {cimag}(a) * ratio) * scale + ({cimag}(a) - {creal}(a) * ratio) * scale * I;
    }}
    const {r} ratio = re / im, scale = 1 / (im + re * ratio);
    return ({cimag}(a) + {creal}(a) * ratio) * scale + ({cimag}(a) * ratio - {creal}(a)) * scale * I;
}}""",
}

LIBRARY = {*c_libraries.PRODUCTS, *c_libraries.ROUTINES}
NO_FAULTS = ("linalg_lu_by_columns",)

HEAD = """\
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef CMPLX
#define CMPLX(re, im) ((double complex)(re) + (im) * I)
#define CMPLXF(re, im) ((float complex)(re) + (im) * I)
#endif
"""


def source(program: Standalone) -> str:
    """The C source of a program."""
    kernels: list[str] = []
    helpers: dict[str, str] = {}
    calls_libraries = False
    for variant in program.variants:
        writer = _SourceWriter(variant.name, program.name, helpers)
        kernels += [_constant(f"{variant.name}_{name}", array) for name, array in variant.captured.items()]
        kernels += [writer.kernel(kernel) for kernel in variant.kernels]
        calls_libraries = calls_libraries or writer.calls_libraries
    runs = [_driver(program, variant) for variant in program.variants]
    head = HEAD + c_libraries.INCLUDES * calls_libraries
    parts = [head, *helpers.values(), *kernels, *runs, *[_dispatch(program)] * bool(program.sizes)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def header(program: Standalone) -> str:
    """The C header of a program."""
    guard = f"{program.name.upper()}_H"
    shapes = [f"   {parameter.name}: {_words(parameter.aval)}" for parameter in program.parameters]
    faults = [f"   {n}: {fault.error.what}" for n, fault in enumerate(program.faults, 1)]
    lines = ["/* Arrays are in C order and do not overlap.", *shapes, "   Returns 0; -1 without memory for temporaries"]
    if program.sizes:
        lines[-1] += f"; {NO_SIZE} for sizes that there is no program for"
    lines[-1] += "; or the number of an error:" if faults else ". */"
    if faults:
        lines += [*faults[:-1], f"{faults[-1]} */"]
    includes = [f"#include <{name}.h>" for name in ("complex", "stdbool", "stdint")]
    declared = ["#ifdef __cplusplus", 'extern "C"', "#endif", f"{prototype(program)};"]
    return "\n".join([f"#ifndef {guard}", f"#define {guard}", *includes, "", *lines, *declared, "#endif", ""])


def prototype(program: Standalone, name: str | None = None) -> str:
    """The declaration of a program's function, or of a function `name` with the same parameters."""
    sizes = [f"int64_t {size}" for size in program.sizes]
    given = [f"const {ctype(parameter.aval.dtype)} *{parameter.name}" for parameter in program.arguments]
    made = [f"{ctype(parameter.aval.dtype)} *{parameter.name}" for parameter in program.results]
    return f"int64_t {name or program.name}({', '.join([*sizes, *given, *made]) or 'void'})"


def ctype(kind: Kind) -> str:
    """The C type of a scalar; raises `LoweringError` if C has none."""
    found = TYPES.get(kind.str[1:]) if isinstance(kind, np.dtype) else None
    if found is None:
        raise LoweringError(f"C has no type for {kind}")
    return found


def _words(aval: Aval) -> str:
    return f"{aval}, {ctype(aval.dtype)}[{aval.size if is_size(aval.size) else max(1, aval.size)}]"


def _constant(name: str, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    values = ", ".join(_number(value) for value in array.reshape(-1)) or "0"
    return f"static const {ctype(array.dtype)} {name}[] = {{{values}}};"


def _driver(program: Standalone, variant: Variant) -> str:
    """The function that runs the kernels of a variant, with memory for temporaries."""
    named = {parameter.buffer: parameter.name for parameter in program.parameters}
    named |= {name: f"{variant.name}_{name}" for name in variant.captured}
    slots = variant.plan.slots
    lines = [f"    int64_t status[{code.STATUS_SIZE}] = {{0, 0, 1}};"]
    if any(code.SIZES in kernel.parameters for kernel in variant.kernels):
        lines.append(f"    int64_t sizes[] = {{{', '.join(program.sizes)}}};")
    names = {slot.name: f"memory_{slot.name}" for slot in slots}
    for slot in slots:
        size = f"({slot.size} + 1)" if is_size(slot.size) else slot.size
        lines.append(f"    {ctype(slot.dtype)} *{names[slot.name]} = malloc({size} * sizeof({ctype(slot.dtype)}));")
    if slots:
        missing = " || ".join(f"!{name}" for name in names.values())
        lines += [f"    if ({missing}) {{", "        status[0] = -1;", "        goto end;", "    }"]
    for kernel in variant.kernels:
        places = [named.get(p.name) or names.get(p.name, p.name) for p in kernel.parameters]
        given = [f"({ctype(p.dtype)} *){place}" for p, place in zip(kernel.parameters, places, strict=True)]
        lines += [f"    {variant.name}_{kernel.name}({', '.join(given)});", "    if (status[0]) goto end;"]
    lines += ["end:", *[f"    free({name});" for name in names.values()], "    return status[0];"]
    static = "static " * bool(program.sizes)
    return "\n".join([f"{static}{prototype(program, variant.name)}", "{", *lines, "}"])


def _dispatch(program: Standalone) -> str:
    """The function that runs the variant for the sizes."""
    given = ", ".join([*program.sizes, *[parameter.name for parameter in program.parameters]])
    lines = ["    int64_t status;"]
    for n, variant in enumerate(program.variants):
        bounds = [f"{size} >= {low} && {size} <= INT64_C({high})" for size, (low, high) in variant.intervals.items()]
        lines += [f"    {'else ' * (n > 0)}if ({' && '.join(bounds)}) {{", f"        status = {variant.name}({given});"]
        if variant.first_fault and variant.faults:
            lines.append(f"        if (status > 0) status += {variant.first_fault};")
        lines.append("    }")
    lines += [f"    else status = {NO_SIZE};", "    return status;"]
    return "\n".join([prototype(program), "{", *lines, "}"])


def _number(value: np.generic) -> str:
    dtype = value.dtype
    if dtype.kind == "c":
        made = "CMPLXF" if dtype.itemsize == 8 else "CMPLX"
        return f"{made}({_number(value.real)}, {_number(value.imag)})"  # type: ignore[attr-defined]
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        number = int(value)  # type: ignore[call-overload]
        if number == np.iinfo(np.int64).min:
            return "INT64_MIN"
        return str(number) if abs(number) < 2**31 else f"{'U' * (dtype.kind == 'u')}INT64_C({number})"
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "-INFINITY" if np.signbit(value) else "INFINITY"
    return f"{value!s}f" if dtype.itemsize == 4 else repr(float(value))


class _SourceWriter:
    """The writer of kernels; `helpers` are the functions that they call, by name."""

    def __init__(self, prefix: str, program: str, helpers: dict[str, str]) -> None:
        self._prefix, self._program = prefix, program
        self._declared: set[str] = set()
        self._stops = count()
        self.calls_libraries = False
        self.helpers = helpers

    def kernel(self, kernel: code.Kernel) -> str:
        """A kernel as a static function."""
        body = inlined(kernel.body)
        counts = Counter(target.name for target in code.assigned(body))
        outside = used_outside(body)
        late = {
            target.name: target.kind
            for target in code.assigned(body)
            if not isinstance(target.kind, Pointer) and (counts[target.name] > 1 or target.name in outside)
        }
        self._declared = set(late)
        parameters = ", ".join(f"{ctype(p.dtype)} *restrict {p.name}" for p in kernel.parameters)
        lines = [f"static void {self._prefix}_{kernel.name}({parameters or 'void'})", "{"]
        lines += [f"    {ctype(kind)} {name};" for name, kind in late.items()]
        return renumbered("\n".join([*lines, *self._block(body, "    "), "}"]))

    # ---- statements

    def _block(self, statements: Sequence[code.Statement], indent: str) -> list[str]:
        return [line for statement in statements for line in self._lines(statement, indent)]

    def _lines(self, statement: code.Statement, indent: str) -> Iterator[str]:
        inner = indent + "    "
        match statement:
            case code.While(body):
                yield from (f"{indent}for (;;) {{", *self._block(body, inner), f"{indent}}}")
            case code.If(condition, then, otherwise):
                yield from (f"{indent}if ({self._outer(condition)}) {{", *self._block(then, inner))
                if otherwise:
                    yield from (f"{indent}}} else {{", *self._block(otherwise, inner))
                yield f"{indent}}}"
            case code.For():
                yield from self._loop(statement, indent)
            case _:
                yield f"{indent}{self._line(statement)}"

    def _line(self, statement: code.Statement) -> str:
        """A statement without blocks."""
        match statement:
            case code.Comment(text):
                return f"/* {text.replace('*/', '* /')} */"
            case code.Assign((code.Name(name, Pointer(dtype)),), code.Apply(_, (code.Constant(size),), _)):
                return f"{ctype(dtype)} {name}[{int(size)}];"  # type: ignore[call-overload]
            case code.Assign((target,), value):
                declared = "" if target.name in self._declared else f"const {ctype(target.kind)} "
                return f"{declared}{target.name} = {self._outer(value)};"
            case code.Assign((total, rest), code.Apply(operation, (_, _, value), _)) if (
                operation.name == "compensated_add"
            ):
                helper = self._helper(operation.name, value.dtype, HELPERS)
                return f"{helper}(&{total.name}, &{rest.name}, {self._outer(value)});"
            case code.Store(array, index, value):
                return f"{array.name}[{self._outer(index)}] = {self._outer(value)};"
            case code.Evaluate(code.Apply(operation, operands, _) as call) if operation.name in LIBRARY:
                return f"{self._library_call(call, operands)};"
            case code.Evaluate(call):
                return f"{self._expression(call)};"
            case code.Break():
                return "break;"
            case code.Return():
                return "return;"
            case _:
                raise LoweringError("C has no operation of several results", remedy=NATIVE)

    def _library_call(self, call: code.Apply, operands: Sequence[code.Expression]) -> str:
        """A call of CBLAS, or of a function that calls LAPACKE."""
        self.calls_libraries = True
        name, texts = call.operation.name, list(map(self._outer, operands))
        dtype = operands[0].dtype
        if name in c_libraries.PRODUCTS:
            return c_libraries.product(name, dtype, texts)
        called = f"{self._program}_{name}_{dtype.str[1:]}"
        self.helpers.setdefault(called, c_libraries.function(name, dtype, called))
        reports = any(isinstance(x, code.Name) and x.name == code.STATUS.name for x in operands)
        return f"{called}({', '.join(texts if reports or name in NO_FAULTS else [*texts, 'NULL', '0'])})"

    def _loop(self, loop: code.For, indent: str) -> Iterator[str]:
        counter, start, stop = loop.counter.name, self._outer(loop.start), self._expression(loop.stop)
        if not all(
            isinstance(part, code.Constant | code.Apply) or part in code.SIZE for part in code.subexpressions(loop.stop)
        ):
            bound = f"{counter}_stop{next(self._stops)}"
            yield f"{indent}const int64_t {bound} = {stop};"
            stop = bound
        if sums := _sums(loop):
            yield f"#pragma omp simd reduction(+:{', '.join(sums)})"
        step = f"{counter}++" if loop.step == 1 else f"{counter} += {loop.step}"
        yield f"{indent}for (int64_t {counter} = {start}; {counter} {'<' if loop.step > 0 else '>'} {stop}; {step}) {{"
        yield from self._block(loop.body, indent + "    ")
        yield f"{indent}}}"

    # ---- expressions

    def _outer(self, expression: code.Expression) -> str:
        """An expression where no parentheses are needed."""
        text = self._expression(expression)
        return text[1:-1] if isinstance(expression, code.Apply) and _is_in_parentheses(text) else text

    def _expression(self, expression: code.Expression) -> str:
        match expression:
            case code.Name(name, _):
                return name
            case code.Constant(value):
                return _number(value)
            case code.Load(array, index):
                return f"{array.name}[{self._outer(index)}]"
            case code.Apply():
                return self._call(expression)

    def _call(self, call: code.Apply) -> str:
        name, operands = call.operation.name, call.operands
        kind = operands[0].kind if operands else BOOL
        if not isinstance(kind, np.dtype):
            raise LoweringError(f"C has no {name}", remedy=NATIVE)
        if name in DTYPES:
            return self._cast(kind, DTYPES[name], self._expression(operands[0]))
        texts = [self._expression(operand) for operand in operands]
        if name == "select":
            return f"({texts[0]} ? {texts[1]} : {texts[2]})"
        if name in ("min", "max"):
            return f"({texts[0]} {'<' if name == 'min' else '>'} {texts[1]} ? {texts[0]} : {texts[1]})"
        if name in OPERATORS and not (name == "divide" and kind.kind == "c"):
            return self._narrowed(f"({texts[0]} {OPERATORS[name]} {texts[1]})", call.kind)
        if name in ("negative", "invert"):
            sign = "-" if name == "negative" else "!" if kind == BOOL else "~"
            return self._narrowed(f"({sign}{texts[0]})", call.kind)
        if name == "logical_not":
            return f"(!{texts[0]})"
        if name == "interrupted":
            return "false"
        return self._function(name, kind, texts)

    def _function(self, name: str, kind: Dtype, texts: Sequence[str]) -> str:
        arguments = ", ".join(texts)
        if name in TESTS and kind.kind == "f":
            return f"({name}({arguments}) != 0)"
        helpers = {"f": HELPERS, "c": COMPLEX_HELPERS}.get(kind.kind, INTEGER_HELPERS)
        if name == "make_complex":
            helpers = COMPLEX_HELPERS
        if name in helpers:
            return f"{self._helper(name, kind, helpers)}({arguments})"
        found = {"f": FUNCTIONS, "c": COMPLEX_FUNCTIONS}.get(kind.kind, {}).get(name)
        if found is None:
            raise LoweringError(f"C has no {name} of {kind}", remedy=NATIVE)
        return f"{found}{_suffix(kind)}({arguments})"

    def _helper(self, name: str, kind: Dtype, helpers: dict[str, str]) -> str:
        called = f"{self._program}_{name}_{kind.str[1:]}"
        words = {f: f"{f}{_suffix(kind)}" for f in ("exp", "fabs", "floor", "fmod", "copysign", "creal", "cimag")}
        real = "float" if kind.itemsize == 8 and kind.kind == "c" else "double"
        self.helpers.setdefault(
            called, f"static inline {helpers[name].format(t=ctype(kind), n=called, r=real, **words)}"
        )
        return called

    def _cast(self, source: Dtype, target: Dtype, text: str) -> str:
        if target == BOOL:
            return f"({text} != 0)"
        if source.kind == "c" and target.kind != "c":
            text = f"creal{_suffix(source)}({text})"
        if source.kind in "fc" and target.kind in "iu" and target.itemsize < 8:
            text = f"(int64_t)({text})"  # narrow integers wrap
        return f"({ctype(target)})({text})"

    def _narrowed(self, text: str, kind: Kind) -> str:
        """The text of an integer in its own width, which C promotes."""
        is_narrow = isinstance(kind, np.dtype) and kind.kind in "iu" and kind.itemsize < 4
        return f"({ctype(kind)}){text}" if is_narrow else text


UNROLLED = 16
"""The number of iterations up to which gcc unrolls a loop, unless it is marked."""


def _sums(loop: code.For) -> Sequence[str]:
    """The sums of a loop that gcc runs as vectors, if its iterations pass nothing else to each other."""
    own = [s for s in loop.body if isinstance(s, code.Assign) and _is_sum(s)]
    sums = [s.targets[0].name for s in own]
    stop = loop.stop.number
    is_short = stop is not None and stop <= UNROLLED
    if is_short or not all(isinstance(s, code.Assign | code.Store | code.Comment) for s in loop.body):
        return []
    later = {target.name for target in code.assigned(loop.body)}
    for statement in loop.body:
        read = [x.name for x in statement.names() if x.name in later]
        if read != ([target.name for target in statement.targets] if statement in own else []):
            return []
        later -= {target.name for target in code.assigned([statement])} - set(sums)
    touched = [x for s in loop.body for x in (s, *s.expressions()) if isinstance(x, code.Store | code.Load)]
    stores = {x.array: x.index for x in touched if isinstance(x, code.Store)}
    is_apart = all(stores.get(x.array, x.index) == x.index for x in touched)
    if any(loop.counter in code.subexpressions(product) for x in touched for product in _products(x.index)):
        return []  # gathers of elements that are apart take longer than one after the other
    are_new = all(_is_new(index, loop.counter) for index in stores.values())
    return list(dict.fromkeys(sums)) if is_apart and are_new else []


def _is_sum(statement: code.Assign) -> bool:
    """True for a variable plus a number that becomes the variable."""
    value = statement.value
    return (
        isinstance(value, code.Apply)
        and value.operation.name == "accumulate"
        and value.operands[0] in statement.targets
    )


def _products(index: code.Expression) -> list[code.Apply]:
    return [
        part
        for part in code.subexpressions(index)
        if isinstance(part, code.Apply) and part.operation.name == "multiply"
    ]


def _is_new(index: code.Expression, counter: code.Name) -> bool:
    """True for an index that differs in all iterations."""
    parts = code.subexpressions(index)
    operations = {part.operation.name for part in parts if isinstance(part, code.Apply)}
    is_linear = operations <= {"add", "subtract", "multiply"} and not any(isinstance(part, code.Load) for part in parts)
    return is_linear and parts.count(counter) == 1


NATIVE = "export an object file instead"


def _suffix(kind: Dtype) -> str:
    return "f" * (kind.itemsize == (8 if kind.kind == "c" else 4))


def _is_in_parentheses(text: str) -> bool:
    """True if the first parenthesis closes at the end."""
    depth = 0
    for n, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return n == len(text) - 1 and text[0] == "("
    return False
