"""The launches and products of a program as lines for people, by what NVIDIA's assembler says where it is there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from fnad.backends.cuda.captures import nodes_of
from fnad.backends.cuda.occupancy import Resources, occupancy, resources
from fnad.errors import LoweringError
from fnad.kernel.launches import DeviceControl, DevicePlan, DeviceProducts, DeviceStep, Launch
from fnad.kernel.traffic import additions, moved

ARCH = "sm_90"
"""The architecture of texts, which no GPU is asked for."""


def launch_lines(planned: DevicePlan, arch: str = ARCH) -> Iterator[str]:
    """Each launch: its grid, the bytes that it reads and writes, and what it takes of a multiprocessor."""
    launches = list(planned.launches.values())
    try:
        taken = [_taken(found, launch, arch) for found, launch in zip(resources(launches, arch), launches, strict=True)]
        missing = ""
    except LoweringError as error:
        taken, missing = [""] * len(launches), f"registers and occupancy are not known: {error.what}"
    sizes = {b.name: b.aval.size for b in (*planned.loops.inputs, *planned.loops.outputs)}
    sizes |= {slot.name: slot.size for slot in planned.slots}
    for launch, text in zip(launches, taken, strict=True):
        read, written = moved(launch, sizes)
        grid = f"{launch.blocks} x {launch.threads} threads"
        atomics = f", {count:,} atomic additions" if (count := additions(launch)) else ""
        yield f"{launch.kernel.name}: {grid}, {read:,} bytes read, {written:,} written{atomics}{text}"
    if missing and launches:
        yield missing
    yield from chain.from_iterable(map(product_lines, planned.steps))


def product_lines(step: DeviceStep) -> Iterator[str]:
    """The matrix products of a step: how many one run of it makes, their sizes, and the bytes that these take."""
    match step:
        case DeviceControl():
            for body in step.bodies:
                yield from chain.from_iterable(map(product_lines, body))
        case DeviceProducts(_, product):
            m, k, n, count = product.m, product.k, product.n, nodes_of(step)
            size = count * product.out.buffer.dtype.itemsize
            read = size * (m * k + k * n + (m * n if product.beta else 0))
            sizes = f"{count:,} of [{m},{k}] · [{k},{n}]"
            yield f"products by cuBLAS: {sizes}, {read:,} bytes read, {size * m * n:,} written"
        case _:
            pass


def _taken(found: Resources, launch: Launch, arch: str) -> str:
    share = occupancy(found, launch.threads, arch)
    local = f", {found.local:,} bytes of local memory" if found.local else ""
    return f", {found.registers} registers{local}, {found.shared:,} bytes shared, occupancy {share:.0%} of {arch}"
