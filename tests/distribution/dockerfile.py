"""Reads the Dockerfile and does by hand what a container engine would do with it, as far as no engine is needed.

Its own commands run, in its order, on what `.dockerignore` leaves of this tree; only its absolute paths are put under a
folder. What is not tried: the base image, users, and that layers are what they should be.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from integration.rig import REPOSITORY

FILE = REPOSITORY / "Dockerfile"
FOLDERS = ("/build", "/opt/purse", "/data")
ROOTS_OWN = ("useradd", "install -d")  # commands that only root can do
RUN_WITHIN_S = 300.0


@dataclass(frozen=True, slots=True)
class Step:
    word: str
    rest: str
    flags: Mapping[str, str] = field(default_factory=dict)

    @property
    def listed(self) -> list[str]:
        """What it says in the form of a list."""
        found = json.loads(self.rest)
        assert isinstance(found, list)
        return found


@dataclass(slots=True)
class Stage:
    """From one FROM to the next. `name` is "" for what becomes the image."""

    base: str
    name: str
    steps: list[Step] = field(default_factory=list)

    def of(self, word: str) -> list[Step]:
        return [step for step in self.steps if step.word == word]


def stages(text: str) -> list[Stage]:
    """What stands before the first FROM is left out: `arguments` reads it."""
    found: list[Stage] = []
    for step in steps(text):
        if step.word == "FROM":
            base, _, name = step.rest.partition(" AS ")
            found.append(Stage(base, name))
        elif found:
            found[-1].steps.append(step)
    return found


def arguments(text: str) -> dict[str, str]:
    """Every ARG and what it is unless somebody says otherwise."""
    return dict(step.rest.split("=", 1) for step in steps(text) if step.word == "ARG")


def steps(text: str) -> Iterator[Step]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        flags = {}
        while found := re.match(r"--([\w-]+)=(\S+)\s+", rest.lstrip()):
            flags[found[1]] = found[2]
            rest = rest.lstrip()[found.end() :]
        yield Step(word, rest.strip(), flags)


def context(folder: Path) -> Path:
    """A copy of what `.dockerignore` leaves of this tree. Of its patterns the last that fits decides."""
    for root, folders, files in os.walk(REPOSITORY):
        inside = Path(root).relative_to(REPOSITORY)
        folders[:] = [name for name in folders if name not in (".git", ".venv")]  # large, and left out: asserted beside
        for name in files:
            if left_in(inside / name):
                (folder / inside).mkdir(parents=True, exist_ok=True)
                shutil.copy2(REPOSITORY / inside / name, folder / inside / name)
    return folder


def left_in(file: Path) -> bool:
    """Whether `.dockerignore` leaves this file, named from the tree's own folder."""
    left = True
    for pattern in (REPOSITORY / ".dockerignore").read_text().splitlines():
        if not pattern or pattern.startswith("#"):
            continue
        wanted, bare = pattern.startswith("!"), pattern.removeprefix("!")
        if any(_fits(str(part), bare) for part in (file, *file.parents)):
            left = wanted
    return left


def _fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch(Path(path).name, pattern.removeprefix("**/"))
    return path.count("/") == pattern.count("/") and fnmatch(path, pattern)


class Image:
    """What the Dockerfile makes, under a folder. `environment` is that of a container, and of nothing around it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stages = stages(FILE.read_text())
        self.environment: dict[str, str] = {}

    def build(self) -> None:
        for number, stage in enumerate(self.stages):
            self._begin(number)
            for step in stage.steps:
                self._do(step, stage)

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A command in a container of it; it may fail."""
        return subprocess.run(
            [self.program(command[0]), *command[1:]],
            cwd=self.root / "data", env=self.environment | more, capture_output=True, text=True,
            timeout=RUN_WITHIN_S, check=False,
        )  # fmt: skip

    def program(self, name: str) -> str:
        found = shutil.which(name, path=self.environment["PATH"])
        assert found is not None, f"there is no {name} in the image"
        return found

    def _begin(self, number: int) -> None:
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_")) or name == "HOME"
        }
        system = self.root / f"system-{number}"  # the base image's own Python
        venv.create(system, with_pip=number == 0, symlinks=True)
        self.environment = {**kept, "PATH": f"{system / 'bin'}:/usr/bin:/bin"}
        (self.root / "data").mkdir(exist_ok=True)

    def _do(self, step: Step, stage: Stage) -> None:
        match step.word:
            case "ARG" | "ENV":
                for name, value in re.findall(r"(\w+)=(\S+)", step.rest):
                    written = value.replace("$PATH", self.environment["PATH"]) if name == "PATH" else value
                    self.environment[name] = self._under(written)
            case "COPY" if "from" not in step.flags:
                *sources, target = step.rest.split()
                self._copy(sources, self.root / "build" / target)
            case "RUN" if not step.rest.startswith(ROOTS_OWN):
                self._run(step.rest)
            case _:
                assert step.word in ("COPY", "RUN", "WORKDIR", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD"), step

    def _copy(self, sources: list[str], target: Path) -> None:
        left = context(self.root / "context") if not (self.root / "context").exists() else self.root / "context"
        target.mkdir(parents=True, exist_ok=True)
        for source in sources:
            if source == ".":
                shutil.copytree(left, target, dirs_exist_ok=True)
            else:
                shutil.copy2(left / source, target / source)

    def _run(self, command: str) -> None:
        done = subprocess.run(
            ["/bin/sh", "-ec", self._under(command)],
            cwd=self.root / "build", env=self.environment, capture_output=True, text=True, timeout=RUN_WITHIN_S,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    def _under(self, text: str) -> str:
        for folder in FOLDERS:
            text = re.sub(rf"(?<![\w/.]){folder}(?=[/ :]|$)", f"{self.root}{folder}", text)
        return text
