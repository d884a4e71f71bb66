"""A Python with what the base install brings alone: imports of all else fail, as where it is not installed.

``with_extras_absent()`` for this process; as a script it imports the command line, draws every page of the
app, and prints each page's warnings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from dojo_core.extras import EXTRAS

DEVELOPERS = ("cmake", "hypothesis", "islpy", "mypy", "ninja", "playwright", "pybind11", "pytest", "ruff")
# What the extras pull in besides, and no page may lean on: the base install does not bring it.
PULLED_IN = (
    "cloudpickle", "fsspec", "huggingface_hub", "locket", "msgpack", "networkx", "partd", "regex",
    "setuptools", "sympy", "tblib", "tokenizers", "toolz", "tqdm", "yaml", "zict",
)  # fmt: skip
ABSENT = {*(name for names in EXTRAS.values() for name in names), *PULLED_IN}


class _Absent:
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def with_extras_absent(names: set[str] = ABSENT) -> Iterator[None]:
    """Modules that were imported before are put back afterwards, as they were."""
    taken: dict[str, ModuleType] = {}
    for name in list(sys.modules):
        if name.partition(".")[0] in names:
            taken[name] = sys.modules.pop(name)
    absent = _Absent(names)
    sys.meta_path.insert(0, absent)  # type: ignore[arg-type]
    try:
        yield
    finally:
        sys.meta_path.remove(absent)  # type: ignore[arg-type]
        sys.modules.update(taken)


def main() -> None:
    with with_extras_absent({*ABSENT, *DEVELOPERS}):
        from streamlit.components.v2 import manifest_scanner
        from streamlit.testing.v1 import AppTest

        import agents.cli
        from dojo_core.cli.loading import loaded
        from pages import shell

        found = manifest_scanner.scan_component_manifests()  # half a second, else for each page anew
        manifest_scanner.scan_component_manifests = lambda: found
        assert all(loaded(command) for command in agents.cli.COMMANDS.values())
        for entry in shell.PAGES:
            drawn = AppTest.from_function(_page, args=(entry.module,), default_timeout=120).run()
            assert not drawn.exception and not drawn.error, (entry.name, drawn.exception, drawn.error)
            print(entry.name, *(warning.value for warning in drawn.warning))


def _page(module: str) -> None:
    from importlib import import_module

    import_module(module).page()


if __name__ == "__main__":
    main()
