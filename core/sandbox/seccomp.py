"""Which system calls a program may make (Linux, x86-64 and aarch64): a list of what is allowed, the rest is refused.

1. Nothing that reaches the network: no socket but a connected pair inside the program.
2. No other process: threads only, no `execve`, signals to itself alone.
3. No change of modes, owners and times, which Landlock does not watch: such calls are ignored (they return 0, so that
   `shutil.copy` works), since what a program wrote goes with its folder. No symbolic or hard links at all: a
   link that is laid in the folder would trip whoever reads it from outside.
4. Everything unknown fails with EPERM, also what later kernels bring.
"""

from __future__ import annotations

import ctypes
import platform
import re
import struct

_BOTH = """faccessat2 439 439 openat2 437 437 close_range 436 436 epoll_pwait2 441 441
read 0 63 write 1 64 readv 19 65 writev 20 66 pread64 17 67 pwrite64 18 68 preadv 295 69 pwritev 296 70
preadv2 327 286 pwritev2 328 287 openat 257 56 close 3 57 fstat 5 80 newfstatat 262 79 statx 332 291
statfs 137 43 fstatfs 138 44 faccessat 269 48 lseek 8 62 readlinkat 267 78 getdents64 217 61 getcwd 79 17
chdir 80 49 fchdir 81 50 renameat 264 38 renameat2 316 276 mkdirat 258 34 unlinkat 263 35 umask 95 166
ftruncate 77 46 fallocate 285 47 fadvise64 221 223 fsync 74 82 fdatasync 75 83 flock 73 32 dup 32 23
dup3 292 24 pipe2 293 59 sendfile 40 71 copy_file_range 326 285 mmap 9 222 munmap 11 215 mremap 25 216
mprotect 10 226 madvise 28 233 msync 26 227 mincore 27 232 brk 12 214 membarrier 324 283 pselect6 270 72
ppoll 271 73 epoll_create1 291 20 epoll_ctl 233 21 epoll_pwait 281 22 eventfd2 290 19 sendto 44 206
recvfrom 45 207 sendmsg 46 211 recvmsg 47 212 shutdown 48 210 getsockname 51 204 getpeername 52 205
getsockopt 55 209 setsockopt 54 208 rt_sigaction 13 134 rt_sigprocmask 14 135 rt_sigreturn 15 139
rt_sigpending 127 136 rt_sigtimedwait 128 137 rt_sigsuspend 130 133 sigaltstack 131 132 getitimer 36 102
setitimer 38 103 nanosleep 35 101 clock_nanosleep 230 115 clock_gettime 228 113 clock_getres 229 114
gettimeofday 96 169 times 100 153 getrusage 98 165 sysinfo 99 179 uname 63 160 getcpu 309 168
getpid 39 172 getppid 110 173 gettid 186 178 getuid 102 174 geteuid 107 175 getgid 104 176 getegid 108 177
getresuid 118 148 getresgid 120 150 getgroups 115 158 getpgid 121 155 getsid 124 156 getpriority 140 141
getrlimit 97 163 setrlimit 160 164 capget 125 90 sched_yield 24 124 sched_getaffinity 204 123
sched_getparam 143 121 sched_getscheduler 145 120 sched_get_priority_max 146 125
sched_get_priority_min 147 126 futex 202 98 set_robust_list 273 99 get_robust_list 274 100
set_tid_address 218 96 rseq 334 293 restart_syscall 219 128 getrandom 318 278 wait4 61 260 waitid 247 95
exit 60 93 exit_group 231 94"""

_X86_ALONE = """open 2 creat 85 stat 4 lstat 6 access 21 readlink 89 getdents 78 rename 82 mkdir 83 rmdir 84
unlink 87 dup2 33 pipe 22 select 23 poll 7 epoll_create 213 epoll_wait 232 eventfd 284 pause 34 alarm 37
time 201 getpgrp 111 arch_prctl 158"""

_IGNORED = {
    "x86_64": "chmod 90 fchmod 91 fchmodat 268 fchmodat2 452 chown 92 fchown 93 lchown 94 fchownat 260 utime 132 "
    "utimes 235 utimensat 280 futimesat 261",
    "aarch64": "fchmod 52 fchmodat 53 fchmodat2 452 fchown 55 fchownat 54 utimensat 88",
}

_NOT_THERE = {"x86_64": range(188, 200), "aarch64": range(5, 17)}
"""Extended attributes: said to be not supported, which `shutil.copy2` takes well."""

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CONDITIONAL = {
    "x86_64": {
        "clone": 56,
        "kill": 62,
        "tgkill": 234,
        "prlimit64": 302,
        "prctl": 157,
        "socketpair": 53,
        "fcntl": 72,
        "ioctl": 16,
        "clone3": 435,
    },
    "aarch64": {
        "clone": 220,
        "kill": 129,
        "tgkill": 131,
        "prlimit64": 261,
        "prctl": 167,
        "socketpair": 199,
        "fcntl": 25,
        "ioctl": 29,
        "clone3": 435,
    },
}

_LOAD, _AND, _EQUALS, _AT_LEAST, _BITS, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _ENOTSUP = 1, 38, 95
_NUMBER, _ARCH = 0, 4  # offsets in struct seccomp_data

_CLONE_THREAD = 0x00010000
_FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030)
"""Descriptors, flags and locks; not F_SETOWN and F_SETSIG, with which a signal can be sent to anyone."""
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Is it a terminal, how wide, how much to read, blocking or not, close on exec."""
_PRCTL = (15, 16, 0x53564D41)
"""Name a thread, or a mapping."""

Instruction = tuple[int, int, int, int]


def supported() -> bool:
    """Whether this kernel filters system calls, on a processor whose calls are known here."""
    if platform.machine() not in _AUDIT_ARCH or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    # Without a filter: EFAULT where filters are there, EINVAL where they are not.
    return libc.prctl(22, 2, None, 0, 0) == -1 and ctypes.get_errno() == 14


def confine(pid: int) -> None:
    """Put the filter on this process, for good; `pid` is its own.

    Raises:
        OSError: the kernel refused.
    """

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    code = b"".join(struct.pack("HBBI", *instruction) for instruction in _filter(platform.machine(), pid))
    buffer = ctypes.create_string_buffer(code, len(code))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    address = ctypes.cast(buffer, ctypes.c_void_p)
    program = Program(len(code) // 8, address)
    if libc.prctl(22, 2, ctypes.addressof(program), 0, 0):  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), "seccomp")


def _filter(machine: str, pid: int) -> list[Instruction]:
    special = _CONDITIONAL[machine]
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUALS, 1, 0, _AUDIT_ARCH[machine]),
        _return(_KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, 0x40000000), _return(_KILL)]  # the x32 numbers would pass by the list
    for number in _allowed(machine):
        code += [(_EQUALS, 0, 1, number), _return(_ALLOW)]
    for number in _numbers(_IGNORED[machine]).values():
        code += [(_EQUALS, 0, 1, number), _return(_ERRNO)]
    for number in _NOT_THERE[machine]:
        code += [(_EQUALS, 0, 1, number), _return(_ERRNO | _ENOTSUP)]
    code += [(_EQUALS, 0, 1, special["clone3"]), _return(_ERRNO | _ENOSYS)]  # the C library then takes clone
    code += _only(
        special["clone"], [(_LOAD, 0, 0, _argument(0)), (_BITS, 0, 1, _CLONE_THREAD), _return(_ALLOW)]
    )
    for name, argument, values in (
        ("kill", 0, (pid,)),
        ("tgkill", 0, (pid,)),
        ("prlimit64", 0, (0, pid)),
        ("prctl", 0, _PRCTL),
        ("fcntl", 1, _FCNTL),
        ("ioctl", 1, _IOCTL),
    ):
        code += _only(special[name], [(_LOAD, 0, 0, _argument(argument)), *_among(values)])
    # A connected pair of streams: a datagram socket could be sent from to any path.
    pair: list[Instruction] = [
        (_LOAD, 0, 0, _argument(0)),
        (_EQUALS, 0, 4, 1),  # AF_UNIX
        (_LOAD, 0, 0, _argument(1)),
        (_AND, 0, 0, 0xFF),
        (_EQUALS, 0, 1, 1),  # SOCK_STREAM
        _return(_ALLOW),
    ]
    return [*code, *_only(special["socketpair"], pair), _return(_ERRNO | _EPERM)]


def _allowed(machine: str) -> list[int]:
    if machine == "x86_64":
        return [int(x86) for x86, _ in re.findall(r"\w+ (\d+) (\d+)", _BOTH)] + list(
            _numbers(_X86_ALONE).values()
        )
    return [int(arm) for _, arm in re.findall(r"\w+ (\d+) (\d+)", _BOTH)]


def _numbers(text: str) -> dict[str, int]:
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def _only(number: int, body: list[Instruction]) -> list[Instruction]:
    """`body` for one system call; what it does not return from is refused."""
    return [(_EQUALS, 0, len(body) + 1, number), *body, _return(_ERRNO | _EPERM)]


def _among(values: tuple[int, ...]) -> list[Instruction]:
    return [i for value in values for i in ((_EQUALS, 0, 1, value), _return(_ALLOW))]


def _return(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)


def _argument(index: int) -> int:
    """Offset of the lower half of an argument (both processors are little endian)."""
    return 16 + 8 * index
