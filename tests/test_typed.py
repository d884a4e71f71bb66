"""What mypy found of one checkout is kept for another, where its files are the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.thorough  # make test itself runs it
def test_what_is_kept_of_one_checkout_hides_no_fault_of_another(tmp_path):
    environment = {**os.environ, "DOJO_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}

    def checked(checkout: str, one: str) -> tuple[str, str]:
        folder = tmp_path / checkout
        folder.mkdir(exist_ok=True)
        (folder / "one.py").write_text(f"def one() -> int:\n    return {one}\n")
        (folder / "two.py").write_text("import one\n\nTWO: int = one.one() + 1\n")
        command = [sys.executable, "-m", "tests.typed", "--verbose", "two.py"]
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        return ran.stdout, ran.stderr

    told, how = checked("first", "1")
    assert told == "Success: no issues found in 1 source file\n" and "inherently stale" in how
    told, how = checked("second", "1")
    assert told == "Success: no issues found in 1 source file\n" and "inherently stale" not in how
    assert (
        'one.py:2: error: Incompatible return value type (got "str", expected "int")'
        in checked("third", "'1'")[0]
    )
