"""scipy.optimize on traced values."""

from fnad.scipy.rule import others_of

__getattr__ = others_of("scipy.optimize")
