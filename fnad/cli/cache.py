"""`fnad cache`: what is kept on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fnad import config, disk
from fnad.api.inspect.tables import columns
from fnad.cli.usage import UsageError
from fnad.disk import CacheFile, DiskCache


def show() -> str:
    """The place of the cache, its size, and the versions of fnad that wrote it."""
    cache = disk.current()
    if cache is None:
        return "off: native code is kept in memory alone"
    if cache.refusal is not None:
        return f"not used: {cache.refusal}"
    entries = _entries(cache)
    limit = config.current().disk_cache_bytes
    whole = [entry for entry in entries if entry.is_whole]
    made = {entry: disk.made(entry) for entry in whole}
    again = sum(entry.used >= found.time + 1 for entry, found in made.items() if found)
    versions = Counter(found.version if found else "damaged" for found in made.values())
    return columns(
        [
            ("directory", str(cache.directory)),
            ("entries", f"{len(whole)}, {again} of them used again later"),
            ("size", f"{size(entries)} of at most {limit / 1e6:.1f} MB"),
            *(("made by", f"fnad {version}: {count}") for version, count in sorted(versions.items())),
        ]
    )


def check() -> tuple[str, int]:
    """Read every entry, remove what is damaged, and say how many; the exit status."""
    entries = _entries(_used())
    bad = [entry for entry in entries if disk.is_damaged(entry)]
    _remove(bad)
    return f"{len(entries) - len(bad)} entries are right, {len(bad)} were damaged and are removed", 1 if bad else 0


def clear() -> str:
    """Remove everything."""
    entries = _entries(_used())
    _remove(entries)
    return f"{len(entries)} entries removed, {size(entries)}"


def size(entries: Iterable[CacheFile]) -> str:
    return f"{sum(entry.nbytes for entry in entries) / 1e6:.1f} MB"


def _used() -> DiskCache:
    cache = disk.current()
    if cache is None:
        raise UsageError("there is no cache: FNAD_CACHE_DIR is empty")
    if cache.refusal is not None:
        raise UsageError(cache.refusal)
    return cache


def _entries(cache: DiskCache) -> list[CacheFile]:
    try:
        return list(cache.entries())
    except OSError as error:
        raise UsageError(f"{cache.directory} cannot be read: {error.strerror}") from None


def _remove(entries: Iterable[CacheFile]) -> None:
    try:
        for entry in entries:
            entry.path.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be removed: {error.strerror}") from None
