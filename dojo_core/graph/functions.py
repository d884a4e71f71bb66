"""Programs as functions of this process. Which object has a program's code is kept, so that a second process
neither generates nor compiles it."""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import os
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from dojo_core.codegen.built import Built, CompileError
from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.graph.nodes import GraphError
from dojo_core.measure import sealed
from dojo_core.measure.machine import this_machine
from dojo_core.passed import described
from dojo_core.program.tree import Program
from dojo_core.source_digest import source_digest
from dojo_core.targets.cpu.limits import cpu
from dojo_core.targets.cpu.objects import Objects

log = logging.getLogger(__name__)

# Who writes a program's code, and what is kept of it.
_WRITERS = ("dojo_core.codegen", "dojo_core.targets.cpu", "dojo_core.program", "dojo_core.graph.functions")

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Function:
    """A program's code: ``call`` takes the addresses of arrays and that of a workspace of so many bytes."""

    call: Any
    workspace_bytes: int


def functions(programs: Mapping[Key, Program], policy: str) -> dict[Key, Function]:
    """Each program, compiled for this machine. Raises GraphError where one cannot be. Compilers wait while
    the machine measures."""
    objects = Objects()
    entries = {key: _entry(program, policy) for key, program in programs.items()}
    found = {key: _kept(objects, entry) for key, entry in entries.items()}
    missing = [key for key, each in found.items() if each is None]
    if missing:
        for key, each in zip(missing, _built([programs[key] for key in missing], policy), strict=True):
            found[key] = each
            _keep(objects, entries[key], *each)
    return {key: _loaded(*each) for key, each in found.items() if each is not None}


def _entry(program: Program, policy: str) -> str:
    """The name of what is kept of a program: all that its code hangs on."""
    hangs_on = (program.text, policy, described(cpu()), this_machine().fingerprint, source_digest(*_WRITERS))
    return hashlib.sha256(repr(hangs_on).encode()).hexdigest()[:24]


def _kept(objects: Objects, entry: str) -> tuple[Built, int] | None:
    path = objects.folder / f"{entry}.json"
    content = sealed.read(path)
    if content is None:
        return None
    key, workspace_bytes = json.loads(bytes(content))
    built = objects.built(key)
    if built is None:
        return None
    with suppress(OSError):  # another process prunes too
        os.utime(path)  # the oldest by use leave first
    return built, workspace_bytes


def _keep(objects: Objects, entry: str, built: Built, workspace_bytes: int) -> None:
    try:
        content = json.dumps([built.code_hash, workspace_bytes]).encode()
        sealed.keep(objects.folder / f"{entry}.json", content)
    except OSError as fault:
        log.warning("Where a kernel's code lies is not kept: %s", fault)


def _built(programs: list[Program], policy: str) -> list[tuple[Built, int]]:
    from dojo_core.targets.cpu.build import build  # imported where something is compiled

    codes = [_code(program, policy) for program in programs]
    made: list[tuple[Built, int]] = []
    for program, code, each in zip(programs, codes, build(codes), strict=True):
        if isinstance(each, CompileError):
            raise GraphError(f"{program.name} does not compile: {each.message}")
        made.append((each, code.workspace_bytes))
    return made


def _code(program: Program, policy: str) -> Code:
    from dojo_core.targets.cpu.codegen import generate

    try:
        return generate(program, policy)
    except NotGeneratable as fault:
        raise GraphError(f"{program.name} has no C: {fault}") from fault


def _loaded(built: Built, workspace_bytes: int) -> Function:
    call = getattr(ctypes.CDLL(built.library), built.symbol)
    call.restype, call.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
    return Function(call, workspace_bytes)
