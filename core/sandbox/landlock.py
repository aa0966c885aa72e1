"""Which files a program may open (Linux 5.13 and later): the kernel's Landlock, which holds for root too."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the numbers are the same on all processors

_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_MAKE_AND_REMOVE = 16 | 32 | 128 | 256  # folders and regular files; no devices, sockets, pipes, links
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights over files each ABI knows; all of them are taken away but what a rule gives back."""


def abi() -> int:
    """Version of Landlock in this kernel; 0 where there is none, or it is switched off."""
    version: int = ctypes.CDLL(None).syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    return max(0, version)


def confine(folder: str, readable: Iterable[str]) -> None:
    """Let this process open nothing but `folder` (read and write) and `readable` (read), for good.

    Raises:
        OSError: the kernel refused.
    """
    version = abi()
    handled = (1 << _RIGHTS[min(version, 5)]) - 1 if version else 0
    attributes = struct.pack("QQQ", handled, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _call(_CREATE, attributes, ctypes.c_size_t(size), 0)
    rules = [(path, _READ | _LIST) for path in readable]
    rules += [(folder, _READ | _LIST | _WRITE | _MAKE_AND_REMOVE | _REFER | _TRUNCATE)]
    rules += [("/dev/null", _READ | _WRITE)] + [
        (f"/dev/{name}", _READ) for name in ("zero", "urandom", "random")
    ]
    for path, rights in rules:
        _allow(ruleset, path, rights & handled)
    # Privileges are given up for good, else the kernel takes no restrictions from an ordinary user.
    if ctypes.CDLL(None, use_errno=True).prctl(38, 1, 0, 0, 0):  # PR_SET_NO_NEW_PRIVS
        raise OSError(ctypes.get_errno(), "no_new_privs")
    _call(_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # not every system has each of these places
    try:
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= _READ | _WRITE | _TRUNCATE
        _call(_ADD, ruleset, 1, struct.pack("=Qi", rights, target), 0)
    finally:
        os.close(target)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock call {number}")
    return result
