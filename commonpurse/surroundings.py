"""What `purse doctor` looks at around the stream: config, keys, disk, copies, snapshots, spool, port. Changes nothing.

Of a key it says that it is there and who may read its file, never what it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from commonpurse.aside import copies_of, store_of
from commonpurse.findings import Patient, Report
from commonpurse.up import KEY_FILE, free_port
from engine.errors import Misconfigured
from engine.plan_file import WebTable
from engine.plan_file import read as read_plan
from engine.prices.own import read_own
from engine.snapshots import SUFFIX, Snapshots
from engine.spool_file import asks_in
from web.proxy.upstreams import read_upstreams

FREE_BYTES_MIN = 256 * 1024 * 1024
OTHERS_MAY = 0o077
NATS_CONFIG = Path("nats") / "nats.conf"  # has the server's password in it


def look_around(patient: Patient, report: Report, environment: Mapping[str, str]) -> None:
    """All that can be seen without a server."""
    _look_at_config(patient, report)
    _look_at_upstreams(patient, report, environment)
    _look_at_keys(patient, report)
    _look_at_disk(patient, report)
    _look_at_copies(patient, report)
    _look_at_snapshots(patient, report)
    _look_at_spool(patient, report)


def look_at_port(patient: Patient, report: Report, environment: Mapping[str, str]) -> None:
    """Whether the page could listen now. For when nothing of ours runs."""
    try:
        table = read_plan(patient.config).local.web if patient.config is not None else WebTable()
    except Misconfigured:
        return None  # said already
    host, port = environment.get("PURSE_HOST") or table.host, environment.get("PURSE_PORT") or str(table.port)
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        return report.add("port", "PURSE_PORT: expected 0 to 65535.", state="problem")
    try:
        free_port(host, int(port))
    except Misconfigured as error:
        return report.add("port", f"{error}.", state="warning")
    return report.add("port", f"{host}:{port} is free for the page.")


def _look_at_config(patient: Patient, report: Report) -> None:
    if patient.config is None:
        return report.add("config", "No config file was named: the plan on the stream is the one in force.")
    try:
        read_own(read_plan(patient.config).local.prices)
    except Misconfigured as error:
        return report.add("config", str(error), state="problem")
    return report.add("config", f"{patient.config} can be read.")


def _look_at_upstreams(patient: Patient, report: Report, environment: Mapping[str, str]) -> None:
    try:
        tables = read_plan(patient.config).local.upstreams if patient.config is not None else {}
    except Misconfigured:
        return  # said already
    for name, table in tables.items():
        try:
            (upstream,) = read_upstreams({name: table}, environment).values()
        except Misconfigured as error:
            says = f"{error}. This shell may lack what the web processes have; they do not start without it."
            report.add("upstreams", says, state="warning")
        else:
            report.add("upstreams", f"{upstream.name}: calls go to {upstream.base_url}, and its key is there.")


def _look_at_keys(patient: Patient, report: Report) -> None:
    key = patient.data / KEY_FILE
    if not key.is_file():
        return report.add("keys", f"There is no {key} yet: `purse up` makes it. Until then nobody is an admin.")
    open_to_all = [file for file in (key, patient.data / NATS_CONFIG) if file.is_file() and _open_to_others(file)]
    for file in open_to_all:
        report.add("keys", f"Others on this machine may read {file}: `chmod 600 {file}`.", state="problem")
    if not open_to_all:
        report.add("keys", "Only their owner may read the files with keys and passwords.")
    return None


def _open_to_others(file: Path) -> bool:
    return bool(file.stat().st_mode & OTHERS_MAY)


def _look_at_disk(patient: Patient, report: Report) -> None:
    there = next(folder for folder in (patient.data, *patient.data.resolve().parents) if folder.is_dir())
    free = shutil.disk_usage(there).free
    store = store_of(patient.data)
    size = sum(file.stat().st_size for file in store.rglob("*") if file.is_file()) if store.is_dir() else 0
    says = f"{_megabytes(free)} are free, the store takes {_megabytes(size)}."
    if free < FREE_BYTES_MIN:
        report.add("disk", f"{says} The stream will soon refuse: make room.", state="problem")
    elif free < 2 * size:
        report.add("disk", f"{says} Too little to set a copy aside after an unclean stop.", state="problem")
    else:
        report.add("disk", says)


def _look_at_copies(patient: Patient, report: Report) -> None:
    copies = copies_of(patient.data)
    if copies:
        names = ", ".join(copy.name for copy in copies)
        report.add("copies", f"Set aside before a server touched the store after an unclean stop: {names}.")
    else:
        report.add("copies", "No copy of the store is set aside; one is made after an unclean stop.")


def _look_at_snapshots(patient: Patient, report: Report) -> None:
    for whose, of in (("engine", ""), ("projector", "projector")):
        snapshots = Snapshots(patient.data, patient.wallet, of=of)
        files = sorted(snapshots.folder.glob(f"*{SUFFIX}"))
        if not files:
            report.add("snapshots", f"The {whose} has taken none yet: its next start reads the whole stream.")
            continue
        newest = snapshots.newest()
        if newest is None:
            says = f"None of the {whose}'s can be used: its next start reads the whole stream. They may be deleted."
            report.add("snapshots", says, state="warning")
        elif files[-1].name != f"{newest.told:020}{SUFFIX}":
            says = f"The {whose}'s newest cannot be used; it starts from that of sequence {newest.told:,}."
            report.add("snapshots", says, state="warning")
        else:
            report.add("snapshots", f"The {whose}'s newest is good, taken at sequence {newest.told:,}.")


def _look_at_spool(patient: Patient, report: Report) -> None:
    folder = patient.data / "spool" / patient.wallet
    waiting = sum(asks_in(file) for file in folder.iterdir() if file.is_file()) if folder.is_dir() else 0
    if waiting:
        says = f"{waiting:,} settlements wait on this disk. The next web process on it sends them: keep the folder."
        return report.add("spool", says, state="warning")
    return report.add("spool", "No settlement waits on this disk.")


def _megabytes(count: int) -> str:
    return f"{count / 1_000_000:,.0f} MB"
