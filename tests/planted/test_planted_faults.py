"""Would the tests notice? Each fault is planted in a copy of the core, and the test that should catch it must fail.

Planting them takes half a minute, so it runs where it is asked for: `PURSE_PLANTED=1 pytest tests/planted`. That every
fault still fits the core, and names a test there is, is checked always.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from planted.crash_faults import CRASH_FAULTS
from planted.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
CORE = ROOT / "engine" / "core"
UNIT = ROOT / "tests" / "unit"
FAILED, PASSED = 1, 0  # exit codes of pytest
IDS = [fault.name for fault in FAULTS]

planting = pytest.mark.skipif(os.environ.get("PURSE_PLANTED") != "1", reason="set PURSE_PLANTED=1 to plant faults")


def copy_core(to: Path) -> Path:
    """A copy of the core that stands before the real one on the path of the tests run with it.

    What else is in `engine` is the real one: tests of guards read the plan that comes with it.
    """
    shutil.copytree(CORE, to / "engine" / "core", ignore=shutil.ignore_patterns("__pycache__"))
    (to / "engine" / "__init__.py").write_text(f"__path__.append({str(CORE.parent)!r})\n")
    ini = f"[pytest]\npythonpath = {to} {ROOT / 'tests'}\naddopts = --import-mode=importlib\n"
    (to / "pytest.ini").write_text(ini)
    return to


def run(copy: Path, tests: list[str], *, of: Path = UNIT, within_s: float = 60) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-c",
        str(copy / "pytest.ini"),
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    alone.pop("PYTHONPATH", None)
    tests = [str(of / test) for test in tests]
    return subprocess.run(
        [*command, *tests], cwd=copy, env=alone, capture_output=True, text=True, timeout=within_s, check=False
    )


@planting
def test_without_a_fault_every_one_of_these_tests_passes(tmp_path: Path) -> None:
    ran = run(copy_core(tmp_path), sorted({fault.caught_by for fault in FAULTS}))
    assert ran.returncode == PASSED, ran.stdout


@planting
@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_a_planted_fault_is_caught(fault: Fault, tmp_path: Path) -> None:
    planted = copy_core(tmp_path) / "engine" / "core" / fault.file
    planted.write_text(planted.read_text().replace(fault.was, fault.planted))
    ran = run(tmp_path, [fault.caught_by])
    assert ran.returncode == FAILED, f"{fault.name}: {fault.caught_by} noticed nothing\n{ran.stdout}{ran.stderr}"


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_every_fault_has_one_place_in_the_core_and_a_test_that_is_there(fault: Fault) -> None:
    assert (CORE / fault.file).read_text().count(fault.was) == 1
    assert fault.was != fault.planted
    file, _, test = fault.caught_by.partition("::")
    assert f"def {test}(" in (UNIT / file).read_text()


def test_the_page_on_testing_lists_every_fault_with_its_test() -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+?) \| `(test_\w+)` \|$", page, re.MULTILINE))
    assert rows == {fault.name: fault.caught_by.partition("::")[2] for fault in [*FAULTS, *CRASH_FAULTS]}
