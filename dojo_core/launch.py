"""Starts a module of the Dojo as a process of its own: ``launch.py MODULE ARGUMENTS…``.

Whatever the working directory, the process runs the code that its parent runs: neither what happens to lie in
that folder (an ``agents`` of somebody's own), nor another checkout that is installed in the same environment.
Run by path, outside any package.
"""

import os
import sys


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as ``python -m`` would."""
    return [sys.executable, "-P", os.path.abspath(__file__), module, *arguments]


def main() -> None:
    import runpy

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.isdir(os.path.join(root, "native")):  # a checkout; else Python finds us as it found this file
        sys.path.insert(0, root)
    import dojo_core.system  # noqa: F401  (asks for this process's cores before OpenMP binds it to one)

    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
