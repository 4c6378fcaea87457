"""The cache on disk: what was compiled, for later processes, found by what it was made of.

    DIRECTORY / first byte of the key / the rest of it      header line, payload

A key is a digest of everything that the payload depends on, so an entry is never changed and never stale. The header
has the key and a checksum: what does not fit them, because it was cut short, damaged or put there under another name,
is a `CacheWarning`, removed, and made again. An entry is written under another name and then renamed, which is atomic:
there are no locks, and processes that write the same entry at once write the same. What a process leaves that was
killed while it wrote is removed after an hour.

Each of the folders of the first byte may take its part of the limit. When an entry is written, those in its folder that
were used least recently make room, so nothing has to look through all of them.

An entry holds machine code. So the directory must be the user's own, no link, and writable by nobody else. One that is
not, or that cannot be written to, is a `CacheWarning`, once in a process; what is compiled then stays in memory.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import time

from fnad import config
from fnad.errors import CacheWarning
from fnad.records import NamedTuple
from fnad.version import __version__

MAGIC = b"fnad-cache-1"
PASSED = str(Path(__file__).parent), contextlib.__file__
"""Where the files are whose frames stand between the user's line and a warning."""
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
    """Where this system has the user's caches."""
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA", "~")
    if sys.platform == "darwin":
        return "~/Library/Caches"
    given = os.environ.get("XDG_CACHE_HOME", "")
    return given if given.startswith("/") else "~/.cache"


@cache
def at(directory: str) -> DiskCache:
    """The cache in a directory."""
    path = Path(directory)
    with contextlib.suppress(RuntimeError):  # where there is no home
        return DiskCache(path.expanduser().absolute())
    return DiskCache(path)


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


def made(entry: Entry) -> Made | None:
    """What the header of an entry says; None if it has none or is gone."""
    with contextlib.suppress(OSError, ValueError), entry.path.open("rb") as file:
        magic, _, _, version, when = file.readline(1000).split()
        return Made(version.decode(), int(when)) if magic == MAGIC else None
    return None


def is_damaged(entry: Entry) -> bool:
    """Whether a file can never be read as an entry."""
    try:
        return opened(entry.path.read_bytes(), entry.key) is None and (entry.is_whole or entry.is_abandoned)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _checksum(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=16).hexdigest().encode()


class Entry(NamedTuple):
    """A file of the cache: when it was last used, in seconds, and its size."""

    used: float
    nbytes: int
    path: Path

    @property
    def is_whole(self) -> bool:
        """Whether it was written to the end."""
        return not self.path.name.startswith(".")

    @property
    def is_abandoned(self) -> bool:
        """Whether the process that was to write it to the end was killed."""
        return not self.is_whole and self.used < time() - ABANDONED

    @property
    def key(self) -> str:
        return self.path.parent.name + self.path.name


def entries_in(folder: Path) -> list[Entry]:
    """The files in a folder, those used least recently first."""
    found: list[Entry] = []
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process removes some, too
            status = path.lstat()
            found.append(Entry(status.st_mtime, status.st_size, path))
    return sorted(found)


class DiskCache:
    """The entries in a directory. Any number of threads and processes may use it at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._is_closed = False
        self._warned: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether there is an entry of a key, which may be damaged."""
        try:
            return self._path(key).exists()
        except OSError:
            return False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written to it."""
        try:
            return not any(self.directory.iterdir())
        except OSError:
            return True

    def read(self, key: str) -> bytes | None:
        """The payload of a key, if it is there."""
        path = self._path(key)
        try:
            if not self._is_there():
                return None
            entry = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(f"{path} cannot be read: {error.strerror}")
            return None
        payload = opened(entry, key)
        if payload is None:
            self._warn_once(f"{path} is damaged, or of another format: it is removed, and made again", CHECK)
        with contextlib.suppress(OSError):  # others can be the ones that may write
            path.unlink() if payload is None else os.utime(path)
        return payload

    def write(self, key: str, payload: bytes) -> None:
        """Keep the payload of a key, if there is room."""
        entry, limit = sealed(key, payload), config.current().disk_cache_bytes // FOLDERS
        if self._is_closed or len(entry) > limit:
            return
        try:
            if self.directory.is_absolute():
                self.directory.mkdir(0o700, parents=True, exist_ok=True)
            if self._is_there():
                put(self._path(key), entry)
                make_room(self._path(key).parent, limit)
        except OSError as error:
            self._is_closed = True
            self._warn(f"{self.directory} cannot be written to: {error.strerror}")

    def entries(self) -> Iterator[Entry]:
        """All files, in no order."""
        for folder in self.directory.iterdir() if self._is_there() else ():
            if folder.is_dir():
                yield from entries_in(folder)

    @property
    def refusal(self) -> str | None:
        """Why the directory is not used, if it is there."""
        if not self.directory.is_absolute():
            return f"there is no home directory for {self.directory}"
        try:
            status = os.lstat(self.directory)
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"{self.directory} cannot be read: {error.strerror}"
        if not stat.S_ISDIR(status.st_mode):
            return f"{self.directory} is a {'link' if stat.S_ISLNK(status.st_mode) else 'file'}, not a directory"
        if sys.platform == "win32":  # which has no such owners and modes
            return None
        if status.st_uid != os.geteuid():
            return f"{self.directory} belongs to another user"
        return f"{self.directory} can be written to by other users" if status.st_mode & 0o022 else None

    def _is_there(self) -> bool:
        """Whether the directory is there, and may be used."""
        refusal = self.refusal
        if refusal is not None:
            self._warn(refusal)
        return refusal is None and self.directory.exists()

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


def put(path: Path, entry: bytes) -> None:
    """Write a file that is there with its whole content, or not at all."""
    path.parent.mkdir(0o700, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(entry)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def make_room(folder: Path, limit: int) -> None:
    """Remove what was used least recently from a folder until no more than `limit` bytes are left."""
    entries = entries_in(folder)
    excess = sum(entry.nbytes for entry in entries) - limit
    for entry in entries:
        if entry.is_abandoned or (entry.is_whole and excess > 0):
            entry.path.unlink(missing_ok=True)
            excess -= entry.nbytes
