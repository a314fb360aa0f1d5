"""`purse up`: a whole wallet on this machine, from the server to the page, in one command.

It checks what can be checked before anything starts, then hands the processes to the supervisor. It never touches the
stream itself except to create it and to ask for a plan, and it ends what it started.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
import structlog

from commonpurse.first_plan import make_stream, prepare_wallet, wanted_plan
from commonpurse.supervisor import UNTRUSTED, Program, Service, Supervisor, module
from engine.data_folder import locked
from engine.embedded import embedded_nats
from engine.errors import Misconfigured, PurseError, Untrusted
from engine.nats_roles import Role
from engine.plan_file import read
from engine.prices.own import read_own
from projector.alerts.settings import alerts_of
from projector.observers.settings import observers_of
from projector.seals.settings import seals_of
from web.proxy.upstreams import read_upstreams

KEY_FILE = "admin.key"
READY_POLL_S = 0.05
READY_WAIT_S = 2.0  # for one answer of /readyz
SLOW_S = 10.0  # then say what it is waiting for
EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  listened on, asked on loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What `purse up` is told. `port` 0: any free one. `nats`: join this server instead of starting one."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 8080
    config: Path | None = None
    nats: str | None = None
    open: bool = False
    wallet: str = "main"


@dataclass(frozen=True, slots=True)
class Opened:
    """A wallet whose parts all answer. `nats_url` has the server's credentials in it: a secret, as `key` is."""

    page: str
    key: str
    data: Path
    nats_url: str


Visit = Callable[[Opened], Awaitable[int]]
"""What is done with an open wallet. It stays open until this returns its exit code, and no longer."""


async def up(options: UpOptions, visit: Visit | None = None) -> int:
    """Run the wallet until SIGINT or SIGTERM, or until its `visit` is over; without one it is only announced.

    Returns the exit code: 0, 1 an error, 4 the stream cannot be trusted, or what the visit came to. A signal cancels
    the visit, which then counts as 0.
    """
    _log_to_stderr()
    stop = _stop_on_signals()
    try:
        return await _up(options, visit or _welcome, stop)
    except PurseError as error:
        return _failed(error)


async def _up(options: UpOptions, visit: Visit, stop: asyncio.Event) -> int:
    port = free_port(options.host, options.port)
    wanted = await asyncio.to_thread(wanted_plan, options.config)
    await asyncio.to_thread(check_local, options.config, os.environ)
    await asyncio.to_thread(observers_of, options.config, environment=os.environ, at=time.time_ns())
    await asyncio.to_thread(seals_of, options.config, environment=os.environ)
    await asyncio.to_thread(alerts_of, options.config, environment=os.environ)
    data = await asyncio.to_thread(options.data.resolve)
    async with _server(options, data) as (url, url_for, servers):
        key = admin_key(data / KEY_FILE)
        await make_stream(url, options.wallet)
        programs = _programs(options, url_for=url_for, data=data, port=port)
        opened = Opened(_page(options.host, port), key, data, url)
        prepare = partial(prepare_wallet, url, options.wallet, wanted, data)
        supervisor = Supervisor([*servers, *programs], say)
        async with asyncio.TaskGroup() as group:
            visiting = group.create_task(_open(prepare, opened, visit, stop))
            status = await supervisor.run(stop)
            visiting.cancel()
    return status if visiting.cancelled() else max(status, visiting.result())


def check_local(config: Path | None, environment: Mapping[str, str]) -> None:
    """What the web process would refuse to start with is refused before anything starts. Raises `Misconfigured`."""
    if config is not None:
        local = read(config).local
        read_upstreams(local.upstreams, environment)
        read_own(local.prices)


@asynccontextmanager
async def _server(options: UpOptions, data: Path) -> AsyncIterator[tuple[str, Callable[[Role], str], list[Service]]]:
    """The server's address for us and for each program, and the server if it is ours to keep running.

    The data folder is locked either way. At a server of somebody else's all have the one address that was given.
    """
    if options.nats is None:
        async with embedded_nats(data, wallet=options.wallet) as server:
            yield server.url, server.url_for, [server]
    else:
        given = options.nats
        async with locked(data):
            yield given, lambda _: given, []


def _programs(options: UpOptions, *, url_for: Callable[[Role], str], data: Path, port: int) -> list[Program]:
    environment = {
        **os.environ,
        "PURSE_WALLET": options.wallet,
        "PURSE_DATA": str(data),
        "PURSE_HOST": options.host,
        "PURSE_PORT": str(port),
        "PURSE_OPEN": "1" if options.open else "",
        "PURSE_CONFIG": str(options.config.resolve()) if options.config else "",
    }
    if options.nats is None:
        environment["PURSE_PATIENCE_MS"] = "0"  # the only engine there is need not wait for another
    names: tuple[Role, ...] = ("engine", "projector", "web")
    return [
        module(name, environment={**environment, "PURSE_NATS_URL": url_for(name)}, logs=data / "logs") for name in names
    ]


async def _open(prepare: Callable[[], Awaitable[None]], opened: Opened, visit: Visit, stop: asyncio.Event) -> int:
    """While the programs come up: give the wallet its plan and wait until all is ready. Then the visit begins."""
    try:
        await prepare()
        await _ready(opened.page)
        return await visit(opened)
    except PurseError as error:
        return _failed(error)
    finally:
        stop.set()


async def _ready(page: str) -> None:
    """Wait for `/readyz`, however long the replay takes; the supervisor notices what does not come up at all."""
    loop = asyncio.get_running_loop()
    speaks_at = loop.time() + SLOW_S
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=READY_WAIT_S)) as session:
        while (missing := await _missing(session, page)) is not None:
            if loop.time() >= speaks_at:
                say(f"still starting: {missing}")
                speaks_at = loop.time() + SLOW_S
            await asyncio.sleep(READY_POLL_S)


async def _missing(session: aiohttp.ClientSession, page: str) -> str | None:
    """What is not ready yet, None if all is."""
    try:
        async with session.get(f"{page}readyz?verbose") as answer:
            return None if answer.status == 200 else (await answer.text())[:300]
    except (aiohttp.ClientError, TimeoutError):
        return f"{page} does not answer yet"


def _page(host: str, port: int) -> str:
    asked = EVERYWHERE.get(host, host)
    return f"http://[{asked}]:{port}/" if ":" in asked else f"http://{asked}:{port}/"


async def _welcome(opened: Opened) -> int:
    """Tell the operator what there is, and stay."""
    welcome = f"""
Common Purse is ready.
  page       {opened.page}
  operators  {opened.page}budget   (sign in with the admin key)
  admin key  {opened.key}   (kept in {opened.data / KEY_FILE})
  data       {opened.data}
  stop       Ctrl-C; the next `purse up` on this folder goes on with the same day
"""
    print(welcome, flush=True)
    await asyncio.Event().wait()  # for ever: only a signal or a part that gives up ends it
    return 0


def say(line: str) -> None:
    """One thing that happened, for whoever watches."""
    print(f"purse: {line}", file=sys.stderr, flush=True)


def _failed(error: PurseError) -> int:
    say(str(error))
    return UNTRUSTED if isinstance(error, Untrusted) else 1


def free_port(host: str, port: int) -> int:
    """`port` if the page can listen there (0: any). Raises `Misconfigured` with what to do about it."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            chosen: int = probe.getsockname()[1]
            return chosen
    except OSError as error:
        raise Misconfigured(
            f"cannot listen on {host}:{port} ({error.strerror}): choose another port with --port or PURSE_PORT"
        ) from None


def admin_key(file: Path) -> str:
    """The wallet's admin key: read, or made and kept in a file that only its owner reads."""
    try:
        if kept := file.read_text(encoding="ascii").strip():
            return kept
    except FileNotFoundError:
        pass
    key = f"purse_{secrets.token_urlsafe(32)}"
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as written:
        written.write(f"{key}\n")
        written.flush()
        os.fsync(written.fileno())
    new.replace(file)  # whole or not at all
    return key


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(sig, stop.set)
    return stop


def _log_to_stderr() -> None:
    """What the operator must know of this process's own log; the programs keep theirs under `DATA/logs`."""
    logging.getLogger("nats").setLevel(logging.CRITICAL)  # its news arrive through callbacks, as our own events
    structlog.configure(
        processors=[structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)],
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
