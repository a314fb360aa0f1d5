"""Would the simulation notice? As `test_planted_faults.py`, for engine and client. Planting needs PURSE_PLANTED=1."""

import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from planted.crash_faults import CRASH_FAULTS
from planted.faults import Fault
from planted.test_planted_faults import FAILED, PASSED, ROOT, planting, run

ENGINE = ROOT / "engine"
SIMULATION = ROOT / "tests" / "simulation"
IDS = [fault.name for fault in CRASH_FAULTS]


def copy_engine(to: Path) -> Path:
    """A copy of the engine that stands before the real one on the path of the tests run with it."""
    shutil.copytree(ENGINE, to / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    paths = f"{to} {ROOT} {ROOT / 'tests'}"
    (to / "pytest.ini").write_text(f"[pytest]\npythonpath = {paths}\naddopts = --import-mode=importlib\n")
    return to


def simulate(copy: Path, tests: list[str]) -> CompletedProcess[str]:
    return run(copy, tests, of=SIMULATION, within_s=600)


@planting
@pytest.mark.timeout(600)
def test_without_a_fault_every_one_of_these_tests_passes(tmp_path: Path) -> None:
    ran = simulate(copy_engine(tmp_path), sorted({fault.caught_by for fault in CRASH_FAULTS}))
    assert ran.returncode == PASSED, ran.stdout


@planting
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", CRASH_FAULTS, ids=IDS)
def test_a_planted_fault_is_caught(fault: Fault, tmp_path: Path) -> None:
    planted = copy_engine(tmp_path) / "engine" / fault.file
    planted.write_text(planted.read_text().replace(fault.was, fault.planted))
    ran = simulate(tmp_path, [fault.caught_by])
    assert ran.returncode == FAILED, f"{fault.name}: {fault.caught_by} noticed nothing\n{ran.stdout}{ran.stderr}"
    assert "AssertionError" in ran.stdout, f"{fault.name} could not even run\n{ran.stdout}{ran.stderr}"


@pytest.mark.parametrize("fault", CRASH_FAULTS, ids=IDS)
def test_every_fault_has_one_place_in_the_engine_and_a_test_that_is_there(fault: Fault) -> None:
    text = (ENGINE / fault.file).read_text()
    assert text.count(fault.was) == 1
    compile(text.replace(fault.was, fault.planted), fault.file, "exec")
    file, _, test = fault.caught_by.partition("::")
    assert f"def {test}(" in (SIMULATION / file).read_text()
