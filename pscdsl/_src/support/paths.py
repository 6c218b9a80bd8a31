"""Files that strangers may have named: resolving paths, and opening them without following links.

A repository can contain links, and its users pipes and devices, in place of anything. So a path is
resolved once (`real`), the result is compared with the folders that may be read or written
(`inside`), and then that resolved path is opened with no link anywhere in it: a link that was put
there since is an error, never another file.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from types import TracebackType

_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_BINARY = getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer would block forever
_FOLDER = getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_STEP = _FOLDER | (getattr(os, "O_PATH", 0) or os.O_RDONLY)
"""The mode to open a folder on the way to another: it need not be readable."""
_CHUNK = 1 << 20


class Refused(Exception):
    """A path is not followed, or a folder not looked through; the message says why."""


class NotAFile(OSError):
    """The path exists, but is no regular file or too large a one; `strerror` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(None, reason)


def real(path: str) -> str | None:
    """Return the path without links, from the root on; None where that cannot be found out."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a folder that may not be looked into, a name that is none
        return None


def resolved(path: str) -> str:
    """Return the path without links if possible; to be shown or compared, not opened."""
    return real(path) or os.path.abspath(path)


def inside(path: str | None, folder: str) -> bool:
    """Return whether a resolved path is a folder or below it."""
    return path is not None and (path == folder or path.startswith(os.path.join(folder, "")))


def inside_any(path: str | None, folders: Iterable[str]) -> bool:
    """Return whether a resolved path is one of some folders, or below one."""
    return any(inside(path, folder) for folder in folders)


def is_private(state: os.stat_result) -> bool:
    """Return whether only this user, and root, can write a file or in a folder."""
    if not hasattr(os, "geteuid"):
        return True
    return state.st_uid in (os.geteuid(), 0) and not stat.S_IMODE(state.st_mode) & 0o022


def is_secret(state: os.stat_result) -> bool:
    """Return whether only this user can read and write a file."""
    if not hasattr(os, "geteuid"):
        return True
    return state.st_uid == os.geteuid() and not stat.S_IMODE(state.st_mode) & 0o077


def admitted(path: str, folders: Iterable[str]) -> str:
    """Return the resolved form of a typed path; raise Refused if a link leads it elsewhere.

    A person who types a name in a checkout does not know where its links lead. So a path that
    begins in one of the folders (resolved ones) must end in one of them, and a file that is a link
    anywhere else must lead to a file in or below its own folder.
    """
    folders = tuple(folders)
    end, written = real(path), os.path.abspath(path)
    if end is None:
        raise Refused(f"{path} cannot be followed: a folder on the way may not be looked into")
    if inside_any(end, folders):
        return end
    leads_out = inside_any(written, folders)
    if os.path.islink(written) and not os.path.isdir(end):
        leads_out = leads_out or not inside(end, resolved(os.path.dirname(written)))
    if leads_out:
        raise Refused(f"{path} leads out of its folder, to {end}: name that, if it is meant")
    return end


def read(path: str, most: int) -> bytes:
    """Return the content of a regular file at a resolved path; raise OSError if it is too large."""
    with _parent(path) as folder:
        return folder.read(os.path.basename(path), most)


def _parent(path: str) -> Folder:
    absolute = os.path.abspath(path)
    if os.path.basename(absolute) in ("", os.curdir, os.pardir):
        raise NotAFile("it is not a regular file")
    return Folder(os.path.dirname(absolute))


class Folder:
    """A folder held open: operations by name happen in it even if its path leads elsewhere later.

    The path is a resolved one. Only regular files are read and removed.
    """

    def __init__(self, path: str, *, make: bool = False) -> None:
        self.path = os.path.abspath(path)
        self._descriptor: int | None = None
        if _BY_DESCRIPTOR:
            self._descriptor = _descend(self.path, make)
        else:
            if make:
                os.makedirs(self.path, 0o700, exist_ok=True)
            if os.path.realpath(self.path) != self.path or not os.path.isdir(self.path):
                raise NotADirectoryError(None, "it is not a folder, or there is a link on the way")

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def is_private(self) -> bool:
        """Return whether it belongs to this user or root, and others cannot write in it."""
        return self._descriptor is None or is_private(os.fstat(self._descriptor))

    def read(self, name: str, most: int, *, private: bool = False) -> bytes:
        """Return the content of a file at one moment; raise OSError beyond `most` bytes.

        With `private`, raise it also if others could have written the file.
        """
        descriptor = self._open(name, os.O_RDONLY | _NO_WAIT)
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise NotAFile("it is not a regular file")
            if private and not is_private(state):
                raise NotAFile("it is another user's, or others can write it")
            if state.st_size > most:
                raise NotAFile(f"it is larger than {most} bytes")
            return _all(descriptor, most)
        finally:
            os.close(descriptor)

    def state(self, name: str) -> os.stat_result | None:
        """Return the state of a regular file; None if the name is free or names something else."""
        try:
            found = os.stat(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)
        except (OSError, ValueError):
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def replace(self, name: str, data: bytes, mode: int = 0o600, *, keep: bool = False) -> None:
        """Write a file atomically: readers find the old content or the new.

        Whatever had the name, even a link, is replaced rather than written to; raise NotAFile for a
        folder, a pipe or a device. With `keep`, a regular file keeps its permissions; otherwise
        they are `mode`, minus those that the umask forbids.
        """
        self._require_replaceable(name)
        temporary = f"{os.urandom(8).hex()}.part"
        before = self.state(name) if keep else None
        self._written(temporary, data, mode, before)
        try:
            source, target = self._name(temporary), self._name(name)
            os.replace(source, target, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException:
            self._unlink(temporary)
            raise

    def create(self, name: str, data: bytes, mode: int = 0o600) -> bool:
        """Write a file atomically if the name is free; return whether it was."""
        temporary = f"{os.urandom(8).hex()}.part"
        self._written(temporary, data, mode)
        try:
            source, target = self._name(temporary), self._name(name)
            os.link(source, target, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except FileExistsError:
            return False
        finally:
            self._unlink(temporary)
        return True

    def remove(self, name: str) -> None:
        """Remove a regular file of this name, if it exists."""
        if self.state(name) is not None:
            self._unlink(name)

    def touch(self, name: str) -> None:
        """Give a regular file the time of now."""
        with contextlib.suppress(OSError):
            os.utime(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)

    def names(self) -> Iterator[str]:
        """Yield the names of all things in it."""
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as found:
            for each in found:
                yield each.name

    def _open(self, name: str, flags: int, mode: int = 0o600) -> int:
        if name != os.path.basename(name) or name in ("", os.curdir, os.pardir):
            raise NotAFile("it is not the name of a file")
        flags |= _NO_LINK | _BINARY
        return os.open(self._name(name), flags, mode, dir_fd=self._descriptor)

    def _require_replaceable(self, name: str) -> None:
        try:
            found = os.stat(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
            raise NotAFile("it is there, and is not a regular file")

    def _name(self, name: str) -> str:
        return os.path.join(self.path, name) if self._descriptor is None else name

    def _written(
        self, name: str, data: bytes, mode: int, like: os.stat_result | None = None
    ) -> None:
        descriptor = self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if like is not None:  # a file of the user's: it must survive a failure of the power
                    os.fsync(descriptor)
                    if hasattr(os, "fchmod"):
                        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        except BaseException:
            self._unlink(name)
            raise

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._name(name), dir_fd=self._descriptor)


def _descend(path: str, make: bool) -> int:
    """Return a folder opened from the root on, a part of its path at a time, following no link."""
    drive, rest = os.path.splitdrive(path)
    parts = [part for part in rest.split(os.sep) if part]
    here = os.open(drive + os.sep, _FOLDER if not parts else _STEP)
    try:
        for number, part in enumerate(parts, 1):
            flags = os.O_RDONLY | _FOLDER if number == len(parts) else _STEP
            there = _step(part, flags, here, make)
            os.close(here)
            here = there
    except BaseException:
        os.close(here)
        raise
    return here


def _step(part: str, flags: int, here: int, make: bool) -> int:
    try:
        return os.open(part, flags, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, 0o700, dir_fd=here)
    return os.open(part, flags, dir_fd=here)


def _all(descriptor: int, most: int) -> bytes:
    chunks: list[bytes] = []
    total = 0
    while chunk := os.read(descriptor, _CHUNK):
        chunks.append(chunk)
        total += len(chunk)
        if total > most:  # counted here: a file that grows, or is none on a disk, has no size
            raise NotAFile(f"it is larger than {most} bytes")
    return b"".join(chunks)
