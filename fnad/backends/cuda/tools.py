"""NVIDIA's programs and files: of packages that bring them, else of the toolkit, else of Triton, which PyTorch has."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from fnad.errors import LoweringError

TOOLKIT = "/usr/local/cuda"
BINARIES = (
    "pip install 'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-nvdisasm>=13' brings ptxas and nvdisasm, which a CUDA toolkit "
    "that CUDA_HOME names has, too"
)


def file_of(package: str, name: str, folder: str) -> Path | None:
    """A file by its name: of a package, else in a folder of a toolkit, else of Triton."""
    in_toolkits = (Path(toolkit, folder, name) for toolkit in toolkits())
    places = chain(files_of(package, name), in_toolkits, files_of("triton", name))
    return next((file for file in places if file.exists()), None)


def files_of(package: str, name: str) -> Iterator[Path]:
    """The files of this name that a package brings."""
    with suppress(PackageNotFoundError):
        yield from (Path(str(file.locate())) for file in files(package) or () if file.name == name)


def toolkits() -> Iterator[str]:
    """The folders that may have a CUDA toolkit: the one of `CUDA_HOME`, that of the compiler, the usual one.

    The compiler on the path may be a script that calls the one of a toolkit, and its folder none.
    """
    if home := os.environ.get("CUDA_HOME"):
        yield home
    if compiler := shutil.which("nvcc"):
        yield str(Path(compiler).resolve().parents[1])
    yield TOOLKIT


def program(package: str, name: str) -> str:
    """The path of a program; raises `LoweringError` where it is not there."""
    found = file_of(package, name, "bin") or shutil.which(name)
    if found is None:
        raise LoweringError(f"the machine code of a GPU takes NVIDIA's {name}, which is not here", remedy=BINARIES)
    return str(found)


def machine_code(ptx: str, arch: str) -> str:
    """The instructions of a GPU that an assembly text becomes."""
    assemble, disassemble = program("nvidia-cuda-nvcc", "ptxas"), program("nvidia-cuda-nvdisasm", "nvdisasm")
    with TemporaryDirectory() as folder:
        text, code = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        text.write_text(ptx)
        output(assemble, f"-arch={arch}", str(text), "-o", str(code))
        return output(disassemble, str(code))


def assembly_report(ptx: str, arch: str) -> str:
    """The assembler's report on the kernels of a text: their registers, and their memory."""
    assemble = program("nvidia-cuda-nvcc", "ptxas")
    with TemporaryDirectory() as folder:
        text = Path(folder, "kernels.ptx")
        text.write_text(ptx)
        done = subprocess.run(
            [assemble, "-v", f"-arch={arch}", str(text), "-o", str(Path(folder, "kernels.cubin"))],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise LoweringError(f"ptxas fails: {done.stderr.strip()}")
    return done.stderr


def output(*command: str) -> str:
    """The output of a program; raises `LoweringError` if the program fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LoweringError(f"{Path(command[0]).name} fails: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
