"""SciPy's special functions as scalar operations: each is one result of a ufunc of scipy.special.

The table is by signature, `i` an i64 and `f` a real number, of which the last may be complex where the ufunc takes it;
the others are then real. `si=sici.0` is the primitive si, result 0 of the ufunc sici. The operation is named scipy_si,
since j0, i0 and the like are names of variables. SciPy is imported when the first of them is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from fnad.scalar.operation import INDEX, Dtype, Kind, OperandError, Operation, real_dtype

FAMILIES = {
    "f": """
        airy_ai=airy.0 airy_ai_slope=airy.1 airy_bi=airy.2 airy_bi_slope=airy.3
        airye_ai=airye.0 airye_ai_slope=airye.1 airye_bi=airye.2 airye_bi_slope=airye.3
        j0 j1 y0 y1 i0 i1 k0 k1 i0e i1e k0e k1e ber bei berp beip ker kei kerp keip
        erfcx erfi dawsn wofz erfinv erfcinv log_ndtr ndtri ndtri_exp
        spence exprel wrightomega sindg cosdg tandg cotdg cosm1 exp10
        gamma gammaln loggamma gammasgn rgamma psi riemann_zeta=_riemann_zeta zetac
        ellipk ellipkm1 ellipe expi exp1 si=sici.0 ci=sici.1 shi=shichi.0 chi=shichi.1
        fresnel_s=fresnel.0 fresnel_c=fresnel.1 itj0=itj0y0.0 ity0=itj0y0.1 it2j0=it2j0y0.0 it2y0=it2j0y0.1
        iti0=iti0k0.0 itk0=iti0k0.1 it2i0=it2i0k0.0 it2k0=it2i0k0.1 itstruve0 it2struve0 itmodstruve0
    """,
    "ff": """
        jv yv yn iv kv kn jve yve ive kve hankel1 hankel2 hankel1e hankel2e struve modstruve
        owens_t hyp0f1 boxcox boxcox1p inv_boxcox inv_boxcox1p powm1 zeta=_zeta beta betaln poch binom
        gammainc gammaincc gammaincinv gammainccinv pdtr pdtrc pdtri chdtr chdtrc chdtri stdtr stdtrit
        elliprc agm ellipkinc ellipeinc expn
        ellipj_sn=ellipj.0 ellipj_cn=ellipj.1 ellipj_dn=ellipj.2 ellipj_ph=ellipj.3
    """,
    "fff": """
        voigt_profile hyperu wright_bessel log_wright_bessel radian
        betainc betaincc betaincinv betainccinv nbdtr nbdtrc nbdtri gdtr gdtrc gdtrix fdtr fdtrc fdtri
        elliprf elliprd elliprg
    """,
    "ffff": "hyp2f1",
    "if": """
        eval_laguerre eval_legendre eval_sh_legendre eval_chebyt eval_chebyu eval_chebyc eval_chebys
        eval_sh_chebyt eval_sh_chebyu eval_hermite eval_hermitenorm
    """,
    "iff": "eval_gegenbauer eval_genlaguerre",
    "ifff": "eval_jacobi",
}


@dataclass(frozen=True, slots=True)
class Special:
    """A result of a SciPy ufunc."""

    name: str
    signature: str
    ufunc: str
    output: int = 0

    def dtypes(self, last: Dtype) -> tuple[Dtype, ...]:
        """The dtypes of the operands by that of the last one."""
        *others, _ = self.signature
        return (*(INDEX if letter == "i" else real_dtype(last) for letter in others), last)

    def result(self, *kinds: Kind) -> Kind:
        """The kind of the result, which is that of the last operand."""
        last = kinds[-1]
        if not isinstance(last, np.dtype) or last.kind not in "fc" or kinds != self.dtypes(last):
            raise OperandError(f"{self.symbol} does not take operands of {', '.join(map(str, kinds))}")
        return last

    def plain(self, *operands: Any) -> Any:
        results = scipy_function(self.ufunc)(*operands)
        value = results[self.output] if isinstance(results, tuple) else results
        return np.asarray(value).astype(operands[-1].dtype)[()]

    @property
    def operation(self) -> Operation:
        return Operation(self.symbol, self.result, self.plain)

    @property
    def symbol(self) -> str:
        return f"scipy_{self.name}"

    @property
    def template(self) -> str:
        """The operation on the operands in their order."""
        return f"{self.symbol}({', '.join(f'{{{n}}}' for n in range(len(self.signature)))})"


@cache
def scipy_function(name: str) -> Callable[..., Any]:
    """A function of scipy.special by name; private ones start with an underscore."""
    return getattr(import_module("scipy.special._ufuncs" if name.startswith("_") else "scipy.special"), name)


def _declared(entry: str, signature: str) -> Special:
    name, _, source = entry.partition("=")
    ufunc, _, output = source.partition(".")
    return Special(name, signature, ufunc or name, int(output or 0))


SPECIAL: dict[str, Special] = {
    function.name: function
    for signature, names in FAMILIES.items()
    for function in (_declared(entry, signature) for entry in names.split())
}
