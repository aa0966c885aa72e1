"""Programs that really try to get out, take too much, or outlive their time."""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import struct
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from core.cli import main
from core.errors import SandboxError
from core.ports import Limits, Program, Ran
from core.sandbox import confined as confined_module
from core.sandbox import macos, places, seccomp
from core.sandbox.confined import Confined, cannot
from core.sandbox.self_test import escapes

ROOT = Path(__file__).parents[2]
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
confined = pytest.mark.skipif(bool(cannot()), reason=f"no sandbox here: {cannot()}")
x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="calls by their x86-64 number")

pytestmark = confined


def run(code: str, *, stdin: str = "", folder: Path | None = None, **limits: Any) -> Ran:
    place = None if folder is None else str(folder)
    return Confined().run(Program(code=code, stdin=stdin, folder=place, limits=Limits(**limits)))


def attempts(*codes: str, folder: Path | None = None) -> dict[str, str]:
    """What came of each of some lines that try something forbidden: "got in", or the error's name."""
    program = f"""
import ctypes, fcntl, json, multiprocessing, os, resource, signal, socket, subprocess, sys
for code in {list(codes)!r}:
    try:
        exec(code)
    except BaseException as e:
        print(json.dumps([code, type(e).__name__]))
    else:
        print(json.dumps([code, "got in"]))
"""
    ran = run(program, folder=folder)
    assert ran.ended == "done", ran
    came = dict(json.loads(line) for line in ran.stdout.splitlines())
    assert set(came) == set(codes)
    return came


def all_refused(*codes: str, folder: Path | None = None) -> bool:
    return set(attempts(*codes, folder=folder).values()) <= {"PermissionError"}


# ---- what a program may do


def test_a_program_reads_its_input_and_says_its_answer() -> None:
    ran = run("print(int(input()) * 2)", stdin="21\n")
    assert (ran.ended, ran.exit_code, ran.stdout, ran.stderr) == ("done", 0, "42\n", "")
    assert 0 < ran.duration_s < 10


def test_installed_packages_threads_and_the_event_loop_are_there() -> None:
    code = """
import asyncio, json, numpy, pydantic, sqlite3, shutil, tempfile, zoneinfo
from concurrent.futures import ThreadPoolExecutor
assert list(ThreadPoolExecutor(4).map(abs, [-1, 2])) == [1, 2]
asyncio.run(asyncio.sleep(0))
with tempfile.NamedTemporaryFile() as f:
    f.write(b"kept"); f.flush()
    shutil.copy2(f.name, "copy")
sqlite3.connect("a.db").execute("create table t (x)")
print(open("copy").read(), numpy.arange(4).sum(), __name__)
"""
    ran = run(code, memory_mb=1024)
    assert (ran.ended, ran.stdout) == ("done", "kept 6 __main__\n"), ran


def test_an_error_is_shown_as_python_shows_it_without_our_frames() -> None:
    ran = run("def f():\n    return 1 / 0\n\nf()\n")
    assert (ran.ended, ran.exit_code) == ("error", 1)
    assert "return 1 / 0" in ran.stderr
    assert "ZeroDivisionError: division by zero" in ran.stderr
    assert "core/sandbox" not in ran.stderr
    assert run("raise SystemExit(3)").exit_code == 3
    assert "SyntaxError" in run("def").stderr


def test_what_a_program_leaves_in_a_folder_of_ours_is_there_for_the_next_one(tmp_path: Path) -> None:
    run("open('note.txt', 'w').write('kept')", folder=tmp_path)
    assert run("print(open('note.txt').read())", folder=tmp_path).stdout == "kept\n"
    assert (tmp_path / "note.txt").read_text() == "kept"


def test_a_folder_of_its_own_is_taken_away_however_deep_and_closed_it_was_made() -> None:
    left = run(
        "import os\nprint(os.getcwd())\nfor _ in range(600):\n    os.mkdir('d')\n    os.chdir('d')\nos.mkdir('x', 0)"
    )
    assert left.ended == "done", left
    assert not Path(left.stdout.strip()).exists()


# ---- the network


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        yield listening


def test_a_server_on_this_machine_is_not_reached(server: socket.socket) -> None:
    host, port = server.getsockname()
    assert all_refused(f"socket.create_connection(({host!r}, {port}), 2)")
    (came,) = attempts(
        f"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}', timeout=2)"
    ).values()
    assert came == "URLError"
    with pytest.raises(TimeoutError):
        server.accept()


def test_no_other_kind_of_socket_leads_out() -> None:
    path = f"/tmp/winnow-{os.getpid()}.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        try:
            assert all_refused(
                "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53))",
                "socket.socket(socket.AF_INET6).bind(('::1', 0))",
                f"socket.socket(socket.AF_UNIX).connect({path!r})",
                "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
                f"socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', {path!r})",
            )
        finally:
            os.unlink(path)


# ---- files


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text("sk-secret", encoding="utf-8")
    path.chmod(0o644)
    return path


def test_no_file_outside_is_read_by_any_way(secret: Path) -> None:
    home = os.path.expanduser("~")
    assert all_refused(
        f"open({str(secret)!r})",
        f"os.open({str(secret)!r}, os.O_RDONLY)",
        f"open('/proc/self/root' + {str(secret)!r})",
        f"os.listdir({str(secret.parent)!r})",
        f"os.listdir({home!r})",
        f"open({str(ROOT / 'README.md')!r})",
        "open('/etc/passwd')",
        "open('/proc/self/environ')",
        "open('/proc/1/cmdline')",
        "os.listdir('/')",
        "os.listdir('/dev/shm')",
    )


def test_nothing_outside_is_written_moved_linked_or_removed(secret: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    beside, path = set(tmp_path.iterdir()), str(secret)
    came = attempts(
        f"open({path!r}, 'w')",
        f"open({path!r}, 'a')",
        f"os.truncate({path!r}, 0)",
        f"os.unlink({path!r})",
        f"os.rename({path!r}, 'stolen')",
        f"os.replace('mine', {path!r})",
        f"os.link({path!r}, 'linked')",
        f"os.link('mine', {path + '-linked'!r})",
        f"os.symlink({path!r}, 'link')",
        f"os.mkdir({path + '-d'!r})",
        "os.mkfifo('pipe')",
        f"os.setxattr({path!r}, 'user.a', b'1')",
        folder=folder,
    )
    # A move across the border of what Landlock allows is called a move between devices.
    assert set(came.values()) <= {"PermissionError", "OSError"}
    assert secret.read_text(encoding="utf-8") == "sk-secret"
    assert (set(tmp_path.iterdir()), [p.name for p in folder.iterdir()]) == (beside, ["mine"])


def test_modes_and_times_of_files_outside_stay(secret: Path) -> None:
    before = secret.stat()
    ran = run(f"import os\nos.chmod({str(secret)!r}, 0)\nos.utime({str(secret)!r}, (1, 1))\nprint('went on')")
    after = secret.stat()
    assert ran.stdout == "went on\n"
    assert (before.st_mode, before.st_mtime) == (after.st_mode, after.st_mtime)


def test_a_link_that_lies_in_the_folder_does_not_lead_out(secret: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    assert all_refused(
        "open('link')", "open('up/secret.txt')", "open('../secret.txt')", "open('up/new', 'w')", folder=folder
    )


def test_no_key_of_ours_is_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_KEY_LAB", "sk-secret")
    ran = run("import os\nprint(os.environ)")
    assert "sk-secret" not in ran.stdout
    assert "WINNOW" not in ran.stdout


# ---- other processes


def test_no_second_process_and_no_reach_for_another_one() -> None:
    came = attempts(
        "os.fork()",
        "subprocess.run([sys.executable, '-c', ''])",
        "os.execv(sys.executable, ['python', '-c', ''])",
        "os.posix_spawn(sys.executable, ['python', '-c', ''], {})",
        "multiprocessing.get_context('spawn').Process(target=print).start()",
        "os.kill(os.getppid(), 9)",
        "os.kill(1, 0)",
        "os.kill(-1, 0)",
        "os.killpg(os.getpgid(os.getppid()), 0)",
        "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
        "fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid())",
        "os.setsid()",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
    )
    assert set(came.values()) <= {"PermissionError", "OSError"}, came


@x86
def test_system_calls_that_lead_out_are_refused() -> None:
    calls = {
        "ptrace the parent": "101, 16, os.getppid(), 0, 0",
        "read the parent's memory": "310, os.getppid(), 0, 0, 0, 0, 0",
        "clone a process": "56, 17, 0, 0, 0, 0",
        "vfork": "58",
        "unshare": "272, 0x10000000",
        "io_uring": "425, 1, 0",
        "memory files": "319, b'm', 0",
        "shared memory": "29, 0, 4096, 0o1600",
        "keys": "250, 0, -3, 0, 0, 0",
        "bpf": "321, 0, 0, 0",
        "a call that is not invented yet": "999",
        "undo the confinement": "157, 22, 0, 0, 0, 0",
        "set the user": "105, 0",
    }
    tries = "".join(f"print(libc.syscall({call}), ctypes.get_errno())\n" for call in calls.values())
    ran = run(f"import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n{tries}")
    came = dict(zip(calls, ran.stdout.splitlines(), strict=True))
    assert {name: said for name, said in came.items() if said != "-1 1"} == {}


@x86
def test_a_call_by_the_numbers_of_another_abi_ends_the_program() -> None:
    ran = run("import ctypes\nprint(ctypes.CDLL(None).syscall(0x40000000 + 39))")
    assert (ran.ended, ran.exit_code, ran.stdout) == ("error", -31, "")


# ---- limits


def test_an_endless_loop_is_stopped_in_time() -> None:
    started = time.monotonic()
    ran = run("print('begun', flush=True)\nwhile True: pass", time_s=0.5)
    assert (ran.ended, ran.exit_code, ran.stdout) == ("time", None, "begun\n")
    assert time.monotonic() - started < 5


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="no waitid here")
def test_an_endless_loop_that_ended_before_anybody_looked_ended_for_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(process: subprocess.Popen[bytes], status: int) -> None:
        await_confinement(process, status)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    await_confinement = confined_module._await_confinement
    monkeypatch.setattr(confined_module, "_await_confinement", late)
    ran = run("print('begun', flush=True)\nwhile True: pass", time_s=0.5)
    assert (ran.ended, ran.stdout) == ("time", "begun\n")


def test_a_program_that_sleeps_or_hides_its_output_is_stopped_in_time() -> None:
    assert run("import os, time\nos.close(1)\nos.close(2)\ntime.sleep(60)", time_s=0.5).ended == "time"


def test_a_program_that_shuts_its_ears_is_stopped_all_the_same() -> None:
    code = "import signal\nfor n in (1, 2, 15, 24): signal.signal(n, signal.SIG_IGN)\nwhile True: pass"
    assert run(code, time_s=0.5).ended == "time"


def test_a_memory_bomb_is_stopped_as_such() -> None:
    ran = run("x = []\nwhile True: x.append(bytearray(10_000_000))", memory_mb=128)
    assert ran.ended == "memory"


def test_endless_output_is_cut_and_stopped() -> None:
    ran = run("while True: print('x' * 1000)", output_bytes=5000)
    assert ran.ended == "output"
    assert len(ran.stdout) == 5000
    ran = run("import sys\nwhile True: sys.stderr.write('é' * 1000)", output_bytes=5001)
    assert (ran.ended, len(ran.stderr)) == ("output", 2501)


@pytest.mark.slow
def test_a_large_file_is_refused_and_a_full_folder_stops_the_program() -> None:
    assert "File too large" in run("open('x', 'wb').write(bytes(2 << 20))", files_mb=1).stderr
    many = "for i in range(10**6): open(f'x{i}', 'wb').write(bytes(1 << 20))\n"
    ran = run(many, files_mb=1)
    assert (ran.ended, "too much in its folder" in ran.stderr) == ("output", True)
    assert run("import os\nwhile True: os.mkdir('d'); os.chdir('d')", files_mb=1).ended == "output"


def test_a_bomb_of_threads_is_stopped() -> None:
    code = "import threading, time\nthreading.stack_size(32768)\nwhile True: "
    ran = run(f"{code}threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", memory_mb=2048)
    assert (ran.ended, "threads" in ran.stderr) == ("memory", True), ran


def test_at_most_as_many_programs_as_cores_run_at_once() -> None:
    spans: list[tuple[float, float]] = []

    def one() -> None:
        ran = run("import time\nprint(time.monotonic()); time.sleep(0.2); print(time.monotonic())")
        begun, ended = map(float, ran.stdout.split())
        spans.append((begun, ended))

    cores = os.cpu_count() or 1
    threads = [threading.Thread(target=one) for _ in range(2 * cores + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at_once = max(sum(a <= begun < b for a, b in spans) for begun, _ in spans)
    assert len(spans) == len(threads)
    assert at_once <= cores


def test_a_program_dies_with_the_process_that_waits_for_it(tmp_path: Path) -> None:
    code = (
        "from core.sandbox.confined import Confined\nfrom core.ports import Limits, Program\n"
        'loop = \'import os, time\\nopen("pid", "w").write(str(os.getpid()))\\ntime.sleep(60)\'\n'
        f"Confined().run(Program(code=loop, folder={str(tmp_path)!r}, limits=Limits(time_s=60)))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    pid = tmp_path / "pid"
    _until(lambda: pid.exists() and pid.read_text() != "")
    process.kill()
    process.wait()
    _until(lambda: not _alive(int(pid.read_text())))


def _until(happened: Any) -> None:
    until = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


# ---- what may run, and where


def test_without_leave_in_the_trust_file_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust = tmp_path / "trust.toml"
    monkeypatch.setenv("WINNOW_TRUST", str(trust))
    folder = tmp_path / "work"
    folder.mkdir()
    program = Program(code="open('ran', 'w')", folder=str(folder))
    with pytest.raises(SandboxError, match=r'run_code = \["agents"\]'):
        Confined("agents").run(program)
    assert not list(folder.iterdir())
    trust.write_text('run_code = ["agents"]\n')
    trust.chmod(0o600)
    assert Confined("agents").run(program).ended == "done"
    with pytest.raises(SandboxError, match="verifiers"):
        Confined("verifiers").run(program)


def test_a_folder_that_is_not_there_is_refused() -> None:
    with pytest.raises(SandboxError, match="is not there"):
        run("pass", folder=Path("/nonexistent/folder"))


def test_a_program_that_could_not_be_confined_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder's neighbours are readable: as where the kernel confines less than it says."""
    monkeypatch.setattr(places, "readable", lambda: [str(tmp_path), *_readable()])
    folder = tmp_path / "work"
    folder.mkdir()
    with pytest.raises(SandboxError, match="files outside of the folder can be read"):
        run("open('ran', 'w')", folder=folder)
    assert not list(folder.iterdir())


_readable = places.readable


def test_an_ordinary_user_is_confined_as_well(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user already")
    reachable = [p for p in (sys.executable, "/usr/bin/python3") if _works_for_nobody(p)]
    if not reachable:
        pytest.skip("no Python here that an ordinary user may start")
    code = """
import os
from core.sandbox.confined import Confined
from core.ports import Program
assert os.getuid() == 65534
for code in ("import socket; socket.socket()", "open('/etc/passwd')", "import os; os.fork()", "print('fine')"):
    ran = Confined().run(Program(code=code))
    print(ran.ended, ran.stdout.strip(), ran.stderr.strip().split("\\n")[-1][:15])
"""
    said = _as_nobody(reachable[0], code)
    assert said.stdout == "error  PermissionError\n" * 3 + "done fine \n", said.stderr


def _works_for_nobody(python: str) -> bool:
    try:
        return _as_nobody(python, "import core.ports").returncode == 0
    except OSError:
        return False


def _as_nobody(python: str, code: str) -> subprocess.CompletedProcess[str]:
    paths = f"{ROOT}:{sysconfig.get_path('purelib')}"
    environ = {"PYTHONPATH": paths, "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": "/tmp"}
    return subprocess.run(
        [python, "-c", code], user=65534, group=65534, extra_groups=[], cwd="/", env=environ,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_what_is_confined_is_said_in_one_sentence() -> None:
    said = Confined().confines
    assert said.endswith(".")
    for word in ("network", "process", "folder", "time", "memory", "output"):
        assert word in said


@pytest.mark.parametrize("machine", list(HEADERS))
def test_numbers_of_system_calls_are_those_of_the_kernel_headers(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("no kernel headers here")
    header = HEADERS[machine].read_text(encoding="utf-8")
    defined = {name: int(n) for name, n in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header)}
    defined.setdefault("newfstatat", defined.get("fstatat", -1))
    column = 0 if machine == "x86_64" else 1
    ours = {name: int(numbers[column]) for name, *numbers in re.findall(r"(\w+) (\d+) (\d+)", seccomp._BOTH)}
    ours |= seccomp._numbers(seccomp._IGNORED[machine]) | seccomp._CONDITIONAL[machine]
    if machine == "x86_64":
        ours |= seccomp._numbers(seccomp._X86_ALONE)
    assert len(ours) > 100
    assert {n: number for n, number in ours.items() if n in defined and defined[n] != number} == {}
    assert set(ours) - set(defined) <= {"fchmodat2"}  # younger than some headers


def decided(machine: str, call: str | int, *arguments: int, arch: int | None = None) -> int | str:
    """What the filter says, worked out by an interpreter of our own: "allowed", "killed", or the error's number."""
    known = dict(re.findall(r"(\w+) (\d+)", seccomp._IGNORED[machine])) | seccomp._CONDITIONAL[machine]
    known |= {
        n: int(x if machine == "x86_64" else a) for n, x, a in re.findall(r"(\w+) (\d+) (\d+)", seccomp._BOTH)
    }
    number = int(known[call]) if isinstance(call, str) else call
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, arch or seccomp._AUDIT_ARCH[machine], 0, *padded)
    code, at, held = seccomp._filter(machine, 1234), 0, 0
    while True:
        op, yes, no, k = code[at]
        at += 1
        if op == seccomp._LOAD:
            (held,) = struct.unpack_from("<I", data, k)
        elif op == seccomp._AND:
            held &= k
        elif op == seccomp._RETURN:
            return {seccomp._ALLOW: "allowed", seccomp._KILL: "killed"}.get(k, k & 0xFFFF)
        else:
            true = {seccomp._EQUALS: held == k, seccomp._AT_LEAST: held >= k, seccomp._BITS: bool(held & k)}[
                op
            ]
            at += yes if true else no


@pytest.mark.parametrize("machine", list(HEADERS))
def test_the_filter_decides_alike_on_both_processors(machine: str) -> None:
    """Landlock would catch some of these as well; older kernels' does not, so the filter must by itself."""
    ours, parent, clone_thread, set_owner = 1234, 1233, 0x10000, 8
    decisions = {
        ("read", 0): "allowed",
        ("openat", 0): "allowed",
        ("kill", ours): "allowed",
        ("kill", parent): 1,
        ("kill", 1): 1,
        ("kill", 2**32 - 1): 1,
        ("tgkill", ours): "allowed",
        ("tgkill", parent): 1,
        ("clone", clone_thread | 0x100): "allowed",
        ("clone", 17): 1,
        ("clone3", 0): 38,
        ("prlimit64", 0): "allowed",
        ("prlimit64", parent): 1,
        ("prctl", 15): "allowed",
        ("prctl", 1): 1,
        ("fcntl", 3, 4): "allowed",
        ("fcntl", 3, set_owner): 1,
        ("ioctl", 3, 0x5401): "allowed",
        ("ioctl", 3, 0x8901): 1,
        ("socketpair", 1, 1 | 0x80000): "allowed",
        ("socketpair", 1, 2): 1,
        ("socketpair", 2, 1): 1,
        ("fchmodat", 0): 0,
        (999, 0): 1,
    }
    assert {case: decided(machine, *case) for case in decisions} == decisions
    assert decided(machine, "read", arch=0x40000003) == "killed"


def test_a_program_has_no_privilege_whoever_started_it() -> None:
    code = """
import ctypes
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
print(ctypes.CDLL(None).capget(ctypes.byref(header), ctypes.byref(data)), list(data))
"""
    assert run(code).stdout == "0 [0, 0, 0, 0, 0, 0]\n"


def test_every_jump_of_the_filter_stays_inside_it() -> None:
    for machine in HEADERS:
        code = seccomp._filter(machine, 1234)
        assert len(code) < 4096
        for at, (op, yes, no, _) in enumerate(code):
            assert max(yes, no) < 256
            assert at + 1 + max(yes, no) < len(code) or op == seccomp._RETURN


def test_the_profile_for_macos_quotes_what_it_is_given() -> None:
    profile = macos.profile('/tmp/a "b"', ["/x"])
    assert profile.count("(") == profile.count(")")
    assert '(subpath "/tmp/a \\"b\\"")' in profile
    assert "(deny default)" in profile


def test_the_child_needs_nothing_but_the_standard_library() -> None:
    code = "import core.sandbox.child, sys; print({m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names)"
    said = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() in ("{'core'}", "{'core', '__main__'}", "{'__main__', 'core'}")


# ---- winnow sandbox


class Open:
    """A sandbox that confines nothing."""

    confines = "Nothing."

    def run(self, program: Program) -> Ran:
        return Ran(ended="done", exit_code=0)


def test_the_self_test_tells_a_sandbox_that_holds_from_one_that_does_not() -> None:
    assert [e.what for e in escapes() if not e.held] == []
    assert not any(e.held for e in escapes(Open()))


def test_the_command_says_what_is_confined_what_may_run_and_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust = tmp_path / "trust.toml"
    trust.write_text('run_code = ["verifiers"]\nfunctions = ["my_checks:score"]\nkey_variables = ["LAB"]\n')
    trust.chmod(0o600)
    monkeypatch.setenv("WINNOW_TRUST", str(trust))
    said = CliRunner().invoke(main, ["sandbox", "--json"])
    assert said.exit_code == 0, said.output
    result = json.loads(said.stdout)
    assert result["confines"] == Confined().confines
    assert result["allows"] == {"run_code": ["verifiers"], "functions": ["my_checks:score"], "mcp": {}}
    assert len(result["tried"]) > 5
    assert all(t["held"] and t["came"] for t in result["tried"])


def test_the_command_says_so_where_nothing_can_be_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    cannot.cache_clear()
    try:
        said = CliRunner().invoke(main, ["sandbox"])
        with pytest.raises(SandboxError, match="cannot be confined on Windows"):
            run("open('ran', 'w')")
    finally:
        cannot.cache_clear()
    assert said.exit_code == 1
    assert said.stdout.startswith("Code cannot be confined on Windows")
    assert "held" not in said.stdout
