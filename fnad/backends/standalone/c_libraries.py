"""Routines of kernels in C by CBLAS and LAPACKE: matrix products, and linear algebra on stacks of matrices.

Words with $ are replaced: $t is the type of elements, $r that of their real parts, $l the letter of BLAS for it, $one
the number 1 as BLAS takes it, $name the name of the function. Matrices are in row order, which these libraries take. A
matrix without a result gives nan or any numbers, and the fault where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from fnad.kernel.linalg import PREFIX, SMALLEST_PIVOT, TRIANGULAR
from fnad.scalar.operation import Dtype

INCLUDES = "#include <cblas.h>\n#include <lapacke.h>\n#include <string.h>\n"

BY_GESV = """\
static void $name(const $t *a, ${operand}$t *x, int64_t count, int64_t m, $columns int64_t *status, int64_t fault)
{
    $t *lu = malloc(m * m * sizeof *lu);
    lapack_int *pivots = malloc(m * sizeof *pivots);
    bool failed = !lu || !pivots;
    $start
    for (int64_t i = 0; i < count && !failed; i++) {
        memcpy(lu, a + i * m * m, m * m * sizeof *lu);
        failed = LAPACKE_${l}gesv_work(LAPACK_ROW_MAJOR, m, n, lu, m, pivots, x + i * m * n, n) != 0;
    }
    free(lu);
    free(pivots);
    for (int64_t k = 0; k < count * m * n && failed; k++) x[k] = NAN;
    if (failed && status) status[0] = fault;
}"""

TRIANGLE = """\
static void $name(const $t *a, const $t *b, $t *x, int64_t count, int64_t m, int64_t n, int64_t *status, int64_t fault)
{
    memcpy(x, b, count * m * n * sizeof *x);
    for (int64_t i = 0; i < count; i++) {
        const $t *here = a + i * m * m;
        for (int64_t k = 0; k < m && $divides; k++)
            if (here[k * (m + 1)] == 0 && status) status[0] = fault;
        cblas_${l}trsm(CblasRowMajor, CblasLeft, $side, CblasNoTrans, $diagonal, m, n, $one, here, m, x + i * m * n, n);
    }
}"""

CHOLESKY = """\
static void $name(const $t *a, $t *x, int64_t count, int64_t m, int64_t *status, int64_t fault)
{
    memcpy(x, a, count * m * m * sizeof *x);
    for (int64_t i = 0; i < count; i++) {
        $t *here = x + i * m * m;
        if (LAPACKE_${l}potrf_work(LAPACK_ROW_MAJOR, '$letter', m, here, m) != 0) {
            for (int64_t k = 0; k < m * m; k++) here[k] = NAN;
            if (status) status[0] = fault;
        }
        for (int64_t row = 0; row < m; row++)
            for (int64_t column = 0; column < m; column++)
                if (column $order row) here[row * m + column] = 0;
    }
}"""

LU = """\
static void $name(const $t *a, $t *packed, int64_t *pivots, int64_t count, int64_t m, int64_t one)
{
    for (int64_t i = 0; i < count; i++) {
        $t *here = packed + i * m * m;
        lapack_int *exchanges = (lapack_int *)(pivots + i * m); /* narrower, so widened from the last one on */
        for (int64_t row = 0; row < m; row++)
            for (int64_t column = 0; column < m; column++) here[column * m + row] = a[(i * m + row) * m + column];
        LAPACKE_${l}getrf_work(LAPACK_COL_MAJOR, m, m, here, m, exchanges);
        for (int64_t row = m - 1; row >= 0; row--) {
            lapack_int from_one;
            memcpy(&from_one, (char *)exchanges + row * sizeof from_one, sizeof from_one);
            pivots[i * m + row] = from_one - 1;
        }
    }
}"""

BY_LU = """\
static void $name(const $t *lu, const int64_t *pivots, const $t *b, $t *x, int64_t count, int64_t m, int64_t one,
                  int64_t n, int64_t *status, int64_t fault)
{
    memcpy(x, b, count * m * n * sizeof *x);
    for (int64_t i = 0; i < count; i++) {
        const $t *here = lu + i * m * m;
        $t *found = x + i * m * n;
        for (int64_t k = 0; k < m; k++)
            if (here[k * (m + 1)] == 0 && status) status[0] = fault;
$steps
    }
}"""

EXCHANGES = """\
        for (int64_t step = 0; step < m; step++) {
            const int64_t row = $row, other = pivots[i * m + row];
            for (int64_t column = 0; column < n && other != row; column++) {
                const $t upper = found[row * n + column];
                found[row * n + column] = found[other * n + column];
                found[other * n + column] = upper;
            }
        }"""

SIDE = "        cblas_${l}trsm(CblasRowMajor, CblasLeft, $side, $how, $diagonal, m, n, $one, here, m, found, n);"

EIGEN = """\
static void $name(const $t *a, $r *w, ${vectors}int64_t count, int64_t m, int64_t *status, int64_t fault)
{
    $t *v = $memory;
    bool failed = !v;
    for (int64_t i = 0; i < count && !failed; i++) {
        $t *here = v + $offset;
        memcpy(here, a + i * m * m, m * m * sizeof *v);
        failed = LAPACKE_${l}$eigen(LAPACK_ROW_MAJOR, '$job', '$letter', m, here, m, w + i * m) != 0;
    }
    $free
    if (failed && status) status[0] = fault;
}"""


DETERMINANT = """\
static void $name(const $t *a, $results, int64_t count, int64_t m, int64_t *status, int64_t fault)
{
    $t *lu = malloc((m * m + 1) * sizeof *lu);
    lapack_int *pivots = malloc((m + 1) * sizeof *pivots);
    const bool failed = !lu || !pivots;
    for (int64_t i = 0; i < count; i++) {
        $t unit = failed ? NAN : 1;
        $r log_size = failed ? NAN : 0;
        if (!failed) {
            memcpy(lu, a + i * m * m, m * m * sizeof *lu);
            LAPACKE_${l}getrf_work(LAPACK_COL_MAJOR, m, m, lu, m, pivots);
        }
        for (int64_t k = 0; k < m && !failed; k++) {
            const $t pivot = pivots[k] == k + 1 ? lu[k * (m + 1)] : -lu[k * (m + 1)];
            const $r size = ${abs}(pivot);
            unit = size == 0 ? 0 : unit * (pivot / size);
            log_size += log(size);
        }
        $store
    }
    free(lu);
    free(pivots);
    if (failed && status) status[0] = fault;
}"""

REVEALING_LU = """\
static void $name(const $t *a, $t *packed, int64_t *rows, int64_t *columns, int64_t count, int64_t m, int64_t *status,
                  int64_t fault)
{
    lapack_int *pivots = malloc((m + 1) * sizeof *pivots);
    if (!pivots && status) status[0] = fault;
    for (int64_t i = 0; i < count; i++) {
        $t *here = packed + i * m * m;
        bool has_small = !pivots;
        memcpy(here, a + i * m * m, m * m * sizeof *here);
        if (pivots) LAPACKE_${l}getrf_work(LAPACK_ROW_MAJOR, m, m, here, m, pivots);
        for (int64_t k = 0; k < m; k++) {
            rows[i * m + k] = pivots ? pivots[k] - 1 : k;
            columns[i * m + k] = k;
            const $r size = ${abs}(here[k * (m + 1)]);
            for (int64_t column = k; column < m; column++)
                if (!(size > 0 && size >= $smallest * ${abs}(here[k * m + column]))) has_small = true;
        }
        if (!has_small) continue;
        $r least = 0;
        memcpy(here, a + i * m * m, m * m * sizeof *here);
        for (int64_t k = 0; k < m * m; k++) least = fmax(least, ${abs}(here[k]));
        least = fmax($eps * least, $tiny);
        for (int64_t k = 0; k < m; k++) {
            int64_t row = k, column = k;
            for (int64_t other = k * m; other < m * m; other++)
                if (other % m >= k && ${abs}(here[other]) > ${abs}(here[row * m + column]))
                    row = other / m, column = other % m;
            rows[i * m + k] = row;
            columns[i * m + k] = column;
            for (int64_t n = 0; n < m; n++) {
                const $t upper = here[k * m + n];
                here[k * m + n] = here[row * m + n];
                here[row * m + n] = upper;
            }
            for (int64_t n = 0; n < m; n++) {
                const $t left = here[n * m + k];
                here[n * m + k] = here[n * m + column];
                here[n * m + column] = left;
            }
            if (${abs}(here[k * (m + 1)]) < least) here[k * (m + 1)] = least;
            for (int64_t n = k + 1; n < m; n++) {
                const $t factor = here[n * m + k] / here[k * (m + 1)];
                here[n * m + k] = factor;
                for (int64_t other = k + 1; other < m; other++) here[n * m + other] -= factor * here[k * m + other];
            }
        }
    }
    free(pivots);
}"""

ROW_ORDER = """\
static void $name(const int64_t *pivots, int64_t *order, int64_t count, int64_t p, int64_t m, int64_t *status,
                  int64_t fault)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t *rows = order + i * m;
        for (int64_t row = 0; row < m; row++) rows[row] = row;
        for (int64_t row = 0; row < p; row++) {
            const int64_t other = pivots[i * p + row];
            if (other < 0 || other >= m) {
                if (status) status[0] = fault;
                return;
            }
            const int64_t upper = rows[row];
            rows[row] = rows[other];
            rows[other] = upper;
        }
    }
}"""

SVD = """\
static void $name(const $t *a, $results, int64_t count, int64_t m, int64_t n, int64_t p, int64_t *status, int64_t fault)
{
    const int64_t rows = $rows, columns = $columns;
    $t *work = malloc((m * n + 1) * sizeof *work);
    bool failed = !work;
    for (int64_t i = 0; i < count && !failed; i++) {
        memcpy(work, a + i * m * n, m * n * sizeof *work);
        failed = LAPACKE_${l}gesdd(LAPACK_ROW_MAJOR, '$job', m, n, work, n, s + i * p, $vectors) != 0;
    }
    free(work);
    for (int64_t k = 0; k < count * p && failed; k++) s[k] = NAN;
    if (failed && status) status[0] = fault;
}"""

QR = """\
static void $name(const $t *a, $q$t *r, int64_t count, int64_t m, int64_t n, $size int64_t *status, int64_t fault)
{
    const int64_t least = m < n ? m : n, columns = $columns;
    $t *work = malloc((m * n + 1) * sizeof *work), *scales = malloc((least + 1) * sizeof *scales);
    bool failed = !work || !scales;
    for (int64_t i = 0; i < count && !failed; i++) {
        $t *r_here = r + i * columns * n;
        memcpy(work, a + i * m * n, m * n * sizeof *work);
        failed = LAPACKE_${l}geqrf(LAPACK_ROW_MAJOR, m, n, work, n, scales) != 0;
        for (int64_t row = 0; row < columns; row++)
            for (int64_t column = 0; column < n; column++)
                r_here[row * n + column] = column < row ? 0 : work[row * n + column];
$basis    }
    free(work);
    free(scales);
$none    for (int64_t k = 0; k < count * columns * n && failed; k++) r[k] = NAN;
    if (failed && status) status[0] = fault;
}"""


BASIS = {
    "q": "$t *q, ",
    "basis": """\
        $t *q_here = q + i * m * columns;
        for (int64_t row = 0; row < m; row++)
            for (int64_t column = 0; column < columns; column++)
                q_here[row * columns + column] = column < least ? work[row * n + column] : 0;
        failed = failed || LAPACKE_${l}$unitary(LAPACK_ROW_MAJOR, m, columns, least, q_here, columns, scales) != 0;
""",
    "none": "    for (int64_t k = 0; k < count * m * columns && failed; k++) q[k] = NAN;\n",
}
"""The text for Q in a QR factorization."""


def filled(text: str, **words: str) -> str:
    """The text with values in the place of some words."""
    return Template(text).safe_substitute(words)


def _triangle(is_lower: bool, unit: bool) -> str:
    side, diagonal = ("CblasLower" if is_lower else "CblasUpper"), ("CblasUnit" if unit else "CblasNonUnit")
    return filled(TRIANGLE, side=side, diagonal=diagonal, divides="false" if unit else "true")


def _by_lu(transposed: bool) -> str:
    """By rows the packed matrix has the transpose of U below, and that of L, with ones, above."""
    how = "CblasNoTrans" if transposed else "CblasTrans"
    lower = filled(SIDE, side="CblasLower", how=how, diagonal="CblasNonUnit")
    upper = filled(SIDE, side="CblasUpper", how=how, diagonal="CblasUnit")
    exchanges = filled(EXCHANGES, row="m - 1 - step" if transposed else "step")
    return filled(BY_LU, steps="\n".join([lower, upper, exchanges] if transposed else [exchanges, upper, lower]))


IDENTITY = """const int64_t n = m;
    for (int64_t k = 0; k < count * m * m; k++) x[k] = k % (m * m) % (m + 1) == 0;"""

LEFT_AND_RIGHT = {"results": "$t *u, $r *s, $t *v", "vectors": "u + i * m * rows, rows, v + i * columns * n, n"}
VECTORS = {"vectors": "$t *vectors, ", "memory": "vectors", "offset": "i * m * m", "job": "V", "free": ""}
VALUES = {"vectors": "", "memory": "malloc(m * m * sizeof *v)", "offset": "0", "job": "N", "free": "free(v);"}

ROUTINES = {
    PREFIX + name: text
    for name, text in {
        "solve": filled(
            BY_GESV, operand="const $t *b, ", columns="int64_t n,", start="memcpy(x, b, count * m * n * sizeof *x);"
        ),
        "inv": filled(BY_GESV, operand="", columns="", start=IDENTITY),
        **{name: _triangle(is_lower, unit) for name, (is_lower, unit) in TRIANGULAR.items()},
        "det": filled(DETERMINANT, results="$t *x", store="x[i] = unit * exp(log_size);"),
        "slogdet": filled(DETERMINANT, results="$t *x, $r *y", store="x[i] = unit, y[i] = log_size;"),
        "revealing_lu": filled(REVEALING_LU, smallest=SMALLEST_PIVOT.hex()),
        "row_order": ROW_ORDER,
        "svd": filled(SVD, results="$r *s", rows="m", columns="n", job="N", vectors="NULL, rows, NULL, columns"),
        "svd_s": filled(SVD, **LEFT_AND_RIGHT, rows="p", columns="p", job="S"),
        "svd_f": filled(SVD, **LEFT_AND_RIGHT, rows="m", columns="n", job="A"),
        "qr_reduced": filled(QR, size="int64_t p,", columns="p", **BASIS),
        "qr_complete": filled(QR, size="", columns="m", **BASIS),
        "qr_r": filled(QR, size="int64_t p,", columns="p", q="", basis="", none=""),
        "cholesky_lo": filled(CHOLESKY, letter="L", order=">"),
        "cholesky_up": filled(CHOLESKY, letter="U", order="<"),
        "lu_by_columns": LU,
        "solve_by_lu": _by_lu(False),
        "solve_by_lu_transposed": _by_lu(True),
        **{
            f"{name}_{side}": filled(EIGEN, letter=letter, **words)
            for name, words in (("eigh", VECTORS), ("eigvalsh", VALUES))
            for side, letter in (("lo", "L"), ("up", "U"))
        },
    }.items()
}
"""The functions by the names of routines (`fnad.kernel.linalg`)."""

PRODUCTS = ("gemm", "gemv")
"""The routines for products (`fnad.kernel.routines`), which are calls of CBLAS."""


def function(routine: str, dtype: Dtype, name: str) -> str:
    """The function of a routine for a dtype."""
    names = ("cabs", "heevd", "ungqr") if dtype.kind == "c" else ("fabs", "syevd", "orgqr")
    words = {
        "name": name,
        "one": _by_reference("1", dtype),
        **dict(zip(("abs", "eigen", "unitary"), names, strict=True)),
    }
    real = _ctype(dtype).partition(" ")[0]
    words |= {"eps": "0x1p-52", "tiny": "0x1p-970"} if real == "double" else {"eps": "0x1p-23", "tiny": "0x1p-103"}
    text = filled(ROUTINES[routine], **words)
    return filled(text, t=_ctype(dtype), r=real, l=_letter(dtype))


def product(routine: str, dtype: Dtype, texts: Sequence[str]) -> str:
    """The call of CBLAS for a product, from the texts of its operands."""
    *_, alpha, beta = [_by_reference(text, dtype) for text in texts]
    how = [f"Cblas{'Trans' if text == 'true' else 'NoTrans'}" for text in texts]
    if routine == "gemm":
        a, a_offset, lda, _, b, b_offset, ldb, _, c, c_offset, ldc, m, n, k, *_ = texts
        given = f"{how[3]}, {how[7]}, {m}, {n}, {k}, {alpha}, {a} + {a_offset}, {lda}, {b} + {b_offset}, {ldb}"
        return f"cblas_{_letter(dtype)}gemm(CblasRowMajor, {given}, {beta}, {c} + {c_offset}, {ldc})"
    a, offset, lda, transposed, x, x_offset, incx, y, y_offset, m, n, *_ = texts
    rows, columns = (n, m) if transposed == "true" else (m, n)
    given = f"{how[3]}, {rows}, {columns}, {alpha}, {a} + {offset}, {lda}, {x} + {x_offset}, {incx}"
    return f"cblas_{_letter(dtype)}gemv(CblasRowMajor, {given}, {beta}, {y} + {y_offset}, 1)"


def _letter(dtype: Dtype) -> str:
    return {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}.get(dtype.str[1:], "")


def _ctype(dtype: Dtype) -> str:
    real = "double" if _letter(dtype) in "dz" else "float"
    return f"{real} complex" if dtype.kind == "c" else real


def _by_reference(number: str, dtype: Dtype) -> str:
    """A number as BLAS takes it: that of a complex type by its address."""
    return f"&({_ctype(dtype)}){{{number}}}" if dtype.kind == "c" else number
