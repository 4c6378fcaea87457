"""All primitives of this package: importing this module registers them."""

from importlib import import_module
from pkgutil import iter_modules

from fnad import ops

for _file in iter_modules(ops.__path__):
    import_module(f"fnad.ops.{_file.name}")
