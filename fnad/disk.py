"""The cache on disk: what was compiled, for later processes, found by what it was made of.

    DIRECTORY / first byte of the key / the rest of it      header line, payload

A key is a digest of everything that the payload depends on, so an entry is never changed and never stale. The header
has the key and a checksum: what does not fit them, because it was cut short, damaged or put there under another name,
is a `CacheWarning`, removed, and made again. An entry is written under another name and then renamed, which is atomic:
there are no locks, and processes that write the same entry at once write the same. What a process leaves that was
killed while it wrote is removed after an hour.

Each of the folders of the first byte may take its part of the limit. When an entry is written, those in its folder that
were used least recently make room, so nothing has to look through all of them.

An entry holds machine code. So the directory must be the user's own, not a link, and writable by no other user. No
other user may be able to replace it by writing to a directory above it. It is opened at each use, and entries are
opened relative to it, so that what was checked is what is read. An entry is a regular file, of which no
more is read than one may have. On Windows, whose directories have other permissions and no descriptors, the directory
must be in the user's folder, which the system protects. A directory that is refused, or that cannot be written to, is a
`CacheWarning`, once in a process; what is compiled then stays in memory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import time
from typing import BinaryIO, NamedTuple, TypeAlias, TypeVar

from fnad import config
from fnad.errors import CacheWarning
from fnad.version import __version__

T = TypeVar("T")
Folder: TypeAlias = "int | Path"
"""An open directory: its descriptor, or its path on Windows."""

IS_WINDOWS = sys.platform == "win32"
BINARY: int = getattr(os, "O_BINARY", 0)
HELD = (PermissionError,) if IS_WINDOWS else ()
"""The error of replacing or removing a file that another process reads, which Windows refuses."""

MAGIC = b"fnad-cache-1"
PASSED = str(Path(__file__).parent), contextlib.__file__
"""The files whose frames lie between the user's line and a warning."""
FOLDERS = 256
ABANDONED = 3600
"""The age in seconds from which a file that is still under its first name belongs to a process that was killed."""

ELSEWHERE = "name another one by FNAD_CACHE_DIR, or none: fnad.config.set_default(disk_cache=False)"
CHECK = "a disk or another program has changed it; fnad cache check looks through all entries"


def digest(*parts: bytes) -> str:
    """A key of these parts."""
    found = blake2b(digest_size=32)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()


# ---- which directory ---------------------------------------------------------------------------------------------


def current() -> DiskCache | None:
    """The cache that the settings name, if any."""
    setting = config.current().disk_cache
    if isinstance(setting, bool):
        return _default() if setting else None
    return at(setting)


def _default() -> DiskCache | None:
    named = os.environ.get("FNAD_CACHE_DIR")
    if named is not None:
        return at(named) if named else None
    return at(f"{user_directory()}/fnad")


def user_directory() -> str:
    """The directory of the user's caches on this system."""
    if sys.platform == "darwin":
        return "~/Library/Caches"
    if IS_WINDOWS:
        return os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    given = os.environ.get("XDG_CACHE_HOME", "")
    return given if given.startswith("/") else "~/.cache"


@cache
def at(directory: str) -> DiskCache:
    """The cache in a directory."""
    path = Path(directory)
    with contextlib.suppress(RuntimeError):  # where there is no home
        return DiskCache(path.expanduser().absolute())
    return DiskCache(path)


# ---- directories no other user can change ------------------------------------------------------------------------


class RefusedError(Exception):
    """A directory that is not used, with the reason."""


@contextlib.contextmanager
def directory_at(path: Path, within: Folder | None = None) -> Generator[Folder]:
    """A directory, opened in the one that it is in; raise `RefusedError` if others can change it."""
    if IS_WINDOWS:
        if not path.is_dir():
            _refuse(path, "is a file, not a directory" if path.exists() else None)
            raise FileNotFoundError(path)
        yield path
        return
    name, flags = path if within is None else path.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        found = os.open(name, flags, dir_fd=_descriptor(within))
    except OSError as error:
        if error.errno in NOT_OPENED and path.parent.is_dir():
            raise RefusedError(f"{path} is a {'link' if path.is_symlink() else 'file'}, not a directory") from None
        raise
    try:
        _refuse(path, _objection(os.fstat(found)))
        yield found
    finally:
        os.close(found)


@contextlib.contextmanager
def own_file(name: str | Path, within: Folder | None = None) -> Generator[BinaryIO | None]:
    """A regular file that is the user's alone, opened; None for anything else, which may block or never end."""
    flags = os.O_RDONLY | (BINARY if IS_WINDOWS else os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.open(_place(within, name), flags, dir_fd=_descriptor(within))
    except OSError as error:
        if error.errno not in NOT_OPENED:
            raise
        yield None
        return
    try:
        status = os.fstat(found)
        is_own = stat.S_ISREG(status.st_mode) and _objection(status) is None
        with open(found, "rb", closefd=False) if is_own else contextlib.nullcontext() as file:
            yield file
    finally:
        os.close(found)


def _place(folder: Folder | None, name: str | Path) -> str | Path:
    """A name in a folder, for functions of `os` that are also given the folder's descriptor, if it has one."""
    return folder / name if isinstance(folder, Path) else name


def _descriptor(folder: Folder | None) -> int | None:
    return folder if isinstance(folder, int) else None


NOT_OPENED = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO)
"""The errors of opening a link, a file in the place of a directory, a socket."""


def _objection(status: os.stat_result, writers: int = 0o022, *trusted: int) -> str | None:
    """The reason why others could change a file or directory; None if they cannot."""
    if IS_WINDOWS:  # where that follows from the place alone
        return None
    if status.st_uid not in (os.geteuid(), *trusted):
        return "belongs to another user"
    return "can be written to by other users" if status.st_mode & writers else None


def _refuse(place: object, objection: str | None) -> None:
    if objection is not None:
        raise RefusedError(f"{place} {objection}")


def _refuse_above(directory: Path, there: Path) -> None:
    """Raise `RefusedError` if others than root could exchange a directory, of whose path this much is there."""
    if IS_WINDOWS:
        is_users = there.resolve().is_relative_to(Path.home().resolve())
        _refuse(directory, None if is_users else f"is not in {Path.home()}, where no other user may write")
        return
    for place, status in _way(there.parent):
        _refuse(f"{place}, above {directory},", _objection(status, _writers(status), 0))


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The directories and links that lead to a path, from the root on."""
    if path.parent != path:
        yield from _way(path.parent)
    status = path.lstat()
    yield path, status
    if stat.S_ISLNK(status.st_mode):
        yield from _way(path.parent / path.readlink())


def _writers(status: os.stat_result) -> int:
    """The bits of a mode that allow others to exchange what is in a directory."""
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return 0
    return 0o002 if status.st_mode & 0o020 and _is_own_group(status.st_gid) else 0o022


def _is_own_group(number: int) -> bool:
    """True if a group has the user's name and no other members, as some systems make one for each user."""
    import grp  # noqa: PLC0415 - there is none on Windows
    import pwd  # noqa: PLC0415

    with contextlib.suppress(KeyError):
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
        return (group.gr_gid, group.gr_name) == (user.pw_gid, user.pw_name) and {*group.gr_mem} <= {user.pw_name}
    return False


def _make(directory: Path) -> None:
    """Make a directory and those above it that are missing, for the user alone."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    if missing:
        _refuse_above(directory, missing[-1])
    for place in reversed(missing):
        place.mkdir(0o700, exist_ok=True)


# ---- entries -----------------------------------------------------------------------------------------------------


def sealed(key: str, payload: bytes) -> bytes:
    """An entry: its header, and the payload."""
    header = (MAGIC, key.encode(), _checksum(payload), __version__.encode(), str(int(time())).encode())
    return b" ".join(header) + b"\n" + payload


def opened(entry: bytes, key: str) -> bytes | None:
    """The payload of the entry of a key; None if it is not that."""
    header, _, payload = entry.partition(b"\n")
    return payload if header.split(b" ")[:3] == [MAGIC, key.encode(), _checksum(payload)] else None


class Made(NamedTuple):
    """Which version of fnad made an entry, and when, in seconds."""

    version: str
    time: int


def made(entry: CacheFile) -> Made | None:
    """The version and time in the header of an entry; None if the entry has no header or is gone."""
    with contextlib.suppress(OSError, ValueError), own_file(entry.path) as file:
        magic, _, _, version, when = (file.readline(1000) if file else b"").split()
        return Made(version.decode(), int(when)) if magic == MAGIC else None
    return None


def is_damaged(entry: CacheFile) -> bool:
    """True if a file can never be read as an entry."""
    try:
        with own_file(entry.path) as file:
            content = file.read(entry.nbytes) if file else b""
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return opened(content, entry.key) is None and (entry.is_whole or entry.is_abandoned)


def _checksum(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=16).hexdigest().encode()


class CacheFile(NamedTuple):
    """A file of the cache: when it was last used, in seconds, and its size."""

    used: float
    nbytes: int
    path: Path

    @property
    def is_whole(self) -> bool:
        """True if it was written to the end."""
        return not self.path.name.startswith(".")

    @property
    def is_abandoned(self) -> bool:
        """True if the process that was to write it to the end was killed."""
        return not self.is_whole and self.used < time() - ABANDONED

    @property
    def key(self) -> str:
        return self.path.parent.name + self.path.name


class DiskCache:
    """The entries in a directory. Any number of threads and processes may use it at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._is_closed = False
        self._warned: set[str] = set()

    def has(self, key: str) -> bool:
        """True if there is an entry of a key, which may be damaged."""
        try:
            return self._path(key).exists()
        except OSError:
            return False

    @property
    def is_empty(self) -> bool:
        """True if nothing was ever written to it."""
        try:
            return not any(self.directory.iterdir())
        except OSError:
            return True

    def read(self, key: str, decode: Callable[[bytes], T] = bytes) -> T | None:
        """The result of `decode` for the payload of a key, if there is one; any error of `decode` is damage."""
        try:
            with self._folder(key[:2]) as folder:
                return self._read(folder, key, decode)
        except FileNotFoundError:
            return None
        except RefusedError as refused:
            self._warn(str(refused))
        except OSError as error:
            self._warn(f"{self._path(key)} cannot be read: {error.strerror}")
        return None

    def _read(self, folder: Folder, key: str, decode: Callable[[bytes], T]) -> T | None:
        with own_file(key[2:], folder) as file:
            if file and os.fstat(file.fileno()).st_size > _entry_limit():
                return None
            content = file.read() if file else b""
        payload = opened(content, key)
        if payload is not None:
            with contextlib.suppress(OSError):  # others can be the ones that may write
                os.utime(_place(folder, key[2:]), dir_fd=_descriptor(folder), follow_symlinks=IS_WINDOWS)
            with contextlib.suppress(Exception):  # whatever a payload raises that fnad did not write
                return decode(payload)
        self._warn_once(f"{self._path(key)} is damaged, or of another format: it is removed, and made again", CHECK)
        with contextlib.suppress(OSError):
            _remove(folder, key[2:])
        return None

    def write(self, key: str, payload: bytes) -> None:
        """Keep the payload of a key, if there is room."""
        entry = sealed(key, payload)
        if self._is_closed or len(entry) > _entry_limit():
            return
        try:
            with self._folder(key[:2], make=True) as folder:
                put(folder, key[2:], entry)
                make_room(folder, _entry_limit())
        except RefusedError as refused:
            self._warn(str(refused))
        except OSError as error:
            self._is_closed = True
            self._warn(f"{self.directory} cannot be written to: {error.strerror}")

    def entries(self) -> Iterator[CacheFile]:
        """All files, in no order."""
        try:
            with self._opened() as directory:
                names = os.listdir(directory)  # noqa: PTH208 - by its descriptor
        except FileNotFoundError:
            return
        except RefusedError as refused:
            self._warn(str(refused))
            return
        for name in names:
            with contextlib.suppress(NotADirectoryError, FileNotFoundError), self._folder(name) as folder:
                yield from entries_in(folder, self.directory / name)

    @property
    def refusal(self) -> str | None:
        """Why the directory is not used, if it is there."""
        try:
            with self._opened():
                return None
        except FileNotFoundError:
            return None
        except RefusedError as refused:
            return str(refused)
        except OSError as error:
            return f"{self.directory} cannot be read: {error.strerror}"

    @contextlib.contextmanager
    def _opened(self, *, make: bool = False) -> Generator[Folder]:
        """The directory, opened; raise `RefusedError` if it must not be used, `OSError` if it cannot."""
        if not self.directory.is_absolute():
            raise RefusedError(f"there is no home directory for {self.directory}")
        if make:
            _make(self.directory)
        with directory_at(self.directory) as found:
            _refuse_above(self.directory, self.directory)
            yield found

    @contextlib.contextmanager
    def _folder(self, name: str, *, make: bool = False) -> Generator[Folder]:
        """One of its folders, opened likewise."""
        with self._opened(make=make) as directory:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(_place(directory, name), 0o700, dir_fd=_descriptor(directory))
            with directory_at(self.directory / name, directory) as found:
                yield found

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / key[2:]

    def _warn(self, why: str) -> None:
        self._warn_once(f"native code is not kept on disk: {why}", ELSEWHERE)

    def _warn_once(self, what: str, remedy: str) -> None:
        if remedy not in self._warned:
            self._warned.add(remedy)
            warnings.warn(f"{what}\n  {remedy}", CacheWarning, stacklevel=_level_of_user())


def _level_of_user() -> int:
    """The stack level, for a warning that its caller gives, of the innermost line that is not fnad's."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PASSED):
        frame, level = frame.f_back, level + 1
    return level


def entries_in(folder: Folder, path: Path) -> list[CacheFile]:
    """The files in an open folder, those used least recently first."""
    found: list[CacheFile] = []
    for name in os.listdir(folder):  # noqa: PTH208 - by its descriptor
        with contextlib.suppress(FileNotFoundError):  # another process removes some, too
            status = os.stat(_place(folder, name), dir_fd=_descriptor(folder), follow_symlinks=False)
            found.append(CacheFile(status.st_mtime, status.st_size, path / name))
    return sorted(found)


def put(folder: Folder, name: str, entry: bytes) -> None:
    """Write a file that is there with its whole content, or not at all."""
    unfinished, within = f".{name}.{os.urandom(8).hex()}", _descriptor(folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY
    try:
        descriptor = os.open(_place(folder, unfinished), flags, 0o600, dir_fd=within)
        with os.fdopen(descriptor, "wb") as file:
            file.write(entry)
        with contextlib.suppress(*HELD):  # what another process reads is the same entry
            os.replace(_place(folder, unfinished), _place(folder, name), src_dir_fd=within, dst_dir_fd=within)
    finally:
        _remove(folder, unfinished)


def make_room(folder: Folder, limit: int) -> None:
    """Remove what was used least recently from a folder until no more than `limit` bytes are left."""
    entries = entries_in(folder, Path())
    excess = sum(entry.nbytes for entry in entries) - limit
    for entry in entries:
        if entry.is_abandoned or (entry.is_whole and excess > 0):
            _remove(folder, entry.path.name)
            excess -= entry.nbytes


def _remove(folder: Folder, name: str) -> None:
    with contextlib.suppress(FileNotFoundError, *HELD):
        os.unlink(_place(folder, name), dir_fd=_descriptor(folder))


def _entry_limit() -> int:
    """The most bytes of an entry, and of all entries in a folder."""
    return config.current().disk_cache_bytes // FOLDERS
