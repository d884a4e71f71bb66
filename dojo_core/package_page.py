"""What an installed package brings, as a Markdown page made from its metadata and docstrings."""

from __future__ import annotations

import inspect
from importlib.metadata import PackageNotFoundError, metadata

from dojo_core import kernels, plugins
from dojo_core.moves.reference import families
from dojo_core.targets.registry import UnknownTarget, backend


def about(package: str) -> tuple[str, str]:
    """A package's version and what it says of itself; empty texts where it has no metadata."""
    try:
        found = metadata(package)
    except PackageNotFoundError:
        return "", ""
    return found["Version"] or "", found["Summary"] or ""


def page(package: str) -> str:
    """The page. Raises KeyError for a package that brings nothing."""
    own = plugins.brought()[package]
    version, summary = about(package)
    parts = [f"# {package} {version}".rstrip() + "\n", *([f"{summary}\n"] if summary else [])]
    parts += [f"{told}\n" for told in plugins.faults() if f" {package} " in told]
    targets = [_target(name) for name in own.get("dojo.targets", ())]
    agents = [told for name in own.get("dojo.agents", ()) if (told := _agent(name))]
    brought = [_kernel(name) for name in own.get("dojo.kernels", ()) if name in kernels.names()]
    for title, sections in (("Targets", targets), ("Agents", agents), ("Kernels", brought)):
        if sections:
            parts += [f"## {title}\n", *sections]
    return "\n".join([*parts, *families(package)])


def _target(name: str) -> str:
    try:
        found = backend(name)
    except UnknownTarget as fault:
        return f"### {name}\n\n{fault}\n"
    limits, clock = found.limits, found.clock()
    marks = ", ".join(f"`:{mark}`" for mark in sorted(limits.marks)) or "none"
    number = clock.missing if clock.origin is None else f"Its programs are {clock.kind}: {clock.unit}."
    told = [
        f"### {name}: {found.words.title}",
        found.words.about,
        inspect.cleandoc(found.__doc__ or ""),
        f"Marks: {marks}. Locations: {', '.join(limits.locations)}. {number}",
        found.words.play,
    ]
    return "\n\n".join(filter(None, told)).replace("``", "`") + "\n"


def _agent(name: str) -> str:
    try:
        found = plugins.load("dojo.agents", name)
    except plugins.Unusable as fault:
        return f"- `{name}`: {fault}\n"
    return f"- `{name}`: {found.about}\n"


def _kernel(name: str) -> str:
    found = kernels.get(name)
    sizes = "x".join(found.parameters)
    shape = "x".join(map(str, found.shapes[0]))
    text = found.text(found.shapes[0]).rstrip()
    return f"### {name}: {found.title}\n\n`{found.formula}`, for {sizes}, say {shape}:\n\n```\n{text}\n```\n"
