"""`types.ts` is TypeScript, and its types tell a right use from a wrong one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from reference.pages import FOLDER

TSC = Path(__file__).resolve().parents[1] / "browser" / "node_modules" / ".bin" / "tsc"
FLAGS = ["--strict", "--noEmit", "--exactOptionalPropertyTypes", "--module", "esnext", "--target", "es2022"]
RIGHT = """
import type { HoldBody, Routes, StatusAnswer } from "./types";

const body: Routes["POST /v1/holds"]["body"] = { id: "call-1", amounts: { usd: "0.25" }, labels: { provider: "jev" } };
const hold: HoldBody = body;

export function mayCall(answer: Routes["POST /v1/holds"]["answers"][201 | 402 | 429]): string | null {
  if ("why" in answer) {
    return answer.why === "busy" ? null : `used up until ${answer.resets_at ?? "ever"}`;
  }
  return "outcome" in answer && answer.outcome === "held" ? answer.expires_at : null;
}

export function left(status: StatusAnswer): string[] {
  return status.budgets.map((budget) => budget.remaining ?? `${100 - budget.used_pct} %`);
}

export const told = (answer: Routes["POST /v1/holds:batch"]["answers"][200]) => answer.told.map((one) => one.status);
export { hold };
"""
WRONG = {
    "an unknown field": 'const body: HoldBody = { amount: "1" }; export { body };',
    "a number that is an amount": 'export const f = (a: HeldAnswer): number => a.amounts["usd"]!;',
    "a body that lacks what it must have": "const body: SettleBody = {}; export { body };",
    "a status that is none": 'export type T = Routes["POST /v1/holds"]["answers"][418];',
}


def compiled(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "types.ts").write_bytes((FOLDER / "types.ts").read_bytes())
    (folder / "use.ts").write_text(text, encoding="utf-8")
    return subprocess.run(
        [TSC, *FLAGS, "use.ts", "types.ts"], cwd=folder, capture_output=True, text=True, check=False, timeout=110
    )


@pytest.fixture(autouse=True)
def _compiler() -> None:
    if not TSC.exists():
        pytest.skip("there is no TypeScript compiler here: `make sdks` fetches it")


def test_a_right_use_is_compiled(tmp_path: Path) -> None:
    found = compiled(tmp_path, RIGHT)
    assert found.returncode == 0, found.stdout


def test_every_wrong_use_is_an_error(tmp_path: Path) -> None:
    """All in one run: each in a file of its own, and each file must have its error."""
    names = "HoldBody, HeldAnswer, SettleBody, Routes"
    for number, text in enumerate(WRONG.values()):
        (tmp_path / f"wrong{number}.ts").write_text(f'import type {{ {names} }} from "./types";\n{text}\n')
    (tmp_path / "types.ts").write_bytes((FOLDER / "types.ts").read_bytes())
    files = [f"wrong{number}.ts" for number in range(len(WRONG))]
    found = subprocess.run(
        [TSC, *FLAGS, *files], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=110
    )
    assert {line.partition("(")[0] for line in found.stdout.splitlines() if "error TS" in line} == set(files)
