"""What `purse up` checks and makes before anything starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from commonpurse.up import admin_key, check_local, free_port
from engine.errors import Misconfigured


def test_a_taken_port_is_named_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Misconfigured, match=rf"127\.0\.0\.1:{port} .*in use.*--port or PURSE_PORT"):
            free_port("127.0.0.1", port)


def test_a_free_port_is_taken_as_it_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert free_port("127.0.0.1", port) == port


def test_port_0_means_any_free_one() -> None:
    assert free_port("127.0.0.1", 0) > 0


def test_a_host_that_is_not_ours_is_an_error() -> None:
    with pytest.raises(Misconfigured, match=r"cannot listen on 192\.0\.2\.1:8080"):
        free_port("192.0.2.1", 8080)


def test_the_admin_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "admin.key"
    key = admin_key(file)
    assert key.startswith("purse_")
    assert len(key) > 40
    assert file.stat().st_mode & 0o777 == 0o600
    assert admin_key(file) == key


def test_two_wallets_have_different_keys(tmp_path: Path) -> None:
    assert admin_key(tmp_path / "one.key") != admin_key(tmp_path / "other.key")


def test_an_empty_key_file_is_no_key(tmp_path: Path) -> None:
    file = tmp_path / "admin.key"
    file.touch()
    assert admin_key(file).startswith("purse_")


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ('[upstreams.openai]\nbase_url = "https://api.example.org/v1"\nkey_env = "NO_SUCH_KEY"\n', "NO_SUCH_KEY"),
        ('[prices."my-model"]\ninput_usd_per_token = "1"\n', "input_usd_per_token: unknown"),
    ],
    ids=["upstream", "price"],
)
def test_e16_what_the_web_would_refuse_is_refused_before_anything_starts(
    tmp_path: Path, table: str, place: str
) -> None:
    config = tmp_path / "purse.toml"
    config.write_text(table)
    with pytest.raises(Misconfigured, match=place):
        check_local(config, {})
    config.write_text(table.replace("NO_SUCH_KEY", "HOME").replace("input_usd_per_token", "usd_per_call"))
    check_local(config, {"HOME": "sk-x"})
