"""What is built and installed here needs a network index of packages, as wherever that is done."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where there is no index to install from; on CI there must be one."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "click"]
    found = subprocess.run(command, cwd=tmp_path_factory.mktemp("index"), capture_output=True, text=True, check=False)
    if found.returncode and not os.environ.get("CI"):
        pytest.skip("no index of packages can be reached from here")
    assert found.returncode == 0, found.stderr
