"""All primitives of this package: importing this module registers them."""

from fnad.control import (  # noqa: F401
    callback,
    checkpoint,
    cond,
    custom,
    external,
    implicit,
    integral,
    ode,
    progress,
    scan,
    snapshots,
    tap,
    while_loop,
)
