"""`[seals]`: what is allowed, and that what is wrong is named without a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import Misconfigured
from projector.seals.settings import SealSettings, read_seals, seals_of

SECRET = "hunter2"
ENVIRONMENT = {
    "NATS": f"nats://witness:{SECRET}@elsewhere.example:4222", "HOOK": f"https://example.com/{SECRET}", "KEY": SECRET,
    "HTTP": f"http://example.com/{SECRET}", "NO_NATS": f"http://{SECRET}",
}  # fmt: skip
WHOLE = {"nats_url_env": "NATS", "subject": "seals.main", "webhook_url_env": "HOOK", "webhook_secret_env": "KEY"}


def test_both_either_and_neither(tmp_path: Path) -> None:
    whole = read_seals(WHOLE, environment=ENVIRONMENT)
    assert whole == SealSettings(
        nats_url=ENVIRONMENT["NATS"], subject="seals.main", webhook_url=ENVIRONMENT["HOOK"], webhook_secret=SECRET
    )
    assert SECRET not in repr(whole)
    assert not read_seals({}, environment={})
    assert not seals_of(None, environment={})
    (tmp_path / "purse.toml").write_text('[seals]\nnats_url_env = "NATS"\nsubject = "seals.main"\n')
    assert seals_of(tmp_path / "purse.toml", environment=ENVIRONMENT).nats_url == ENVIRONMENT["NATS"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"colour": 1}, "seals.colour: unknown"),
        ({"subject": None}, "seals.subject: is required with nats_url_env"),
        ({"nats_url_env": None}, "seals.nats_url_env: is required with subject"),
        ({"webhook_secret_env": None}, "seals.webhook_secret_env: is required"),
        ({"subject": "seals.*"}, "seals.subject: expected words"),
        ({"subject": 5}, "seals.subject: expected words"),
        ({"nats_url_env": "NONE"}, "seals.nats_url_env: the environment variable NONE is not set"),
        ({"nats_url_env": "NO_NATS"}, "seals.nats_url_env: the NATS address"),
        ({"webhook_url_env": "HTTP"}, "seals.webhook_url_env: expected https"),
        ({"webhook_secret_env": SECRET}, "seals.webhook_secret_env: expected the name"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(change: dict[str, object], place: str) -> None:
    written = {name: value for name, value in {**WHOLE, **change}.items() if value is not None}
    with pytest.raises(Misconfigured) as refused:
        read_seals(written, environment=ENVIRONMENT)
    assert str(refused.value).startswith(place)
    assert SECRET not in str(refused.value)


def test_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "purse.toml"
    file.write_text("[seals]\ncolour = 1\n")
    with pytest.raises(Misconfigured, match=r"purse\.toml: seals\.colour"):
        seals_of(file, environment={})
