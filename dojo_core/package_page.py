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
        described = metadata(package)
    except PackageNotFoundError:
        return "", ""
    return described["Version"] or "", described["Summary"] or ""


def page(package: str) -> str:
    """The page. Raises KeyError for a package that brings nothing."""
    entries = plugins.brought()[package]
    version, summary = about(package)
    parts = [f"# {package} {version}".rstrip() + "\n", *([f"{summary}\n"] if summary else [])]
    parts += [f"{text}\n" for text in plugins.faults() if f" {package} " in text]
    targets = [_target(name) for name in entries.get("dojo.targets", ())]
    agents = [text for name in entries.get("dojo.agents", ()) if (text := _agent(name))]
    brought = [_kernel(name) for name in entries.get("dojo.kernels", ()) if name in kernels.names()]
    for title, sections in (("Targets", targets), ("Agents", agents), ("Kernels", brought)):
        if sections:
            parts += [f"## {title}\n", *sections]
    return "\n".join([*parts, *families(package)])


def _target(name: str) -> str:
    try:
        target = backend(name)
    except UnknownTarget as fault:
        return f"### {name}\n\n{fault}\n"
    limits, clock = target.limits, target.clock()
    marks = ", ".join(f"`:{mark}`" for mark in sorted(limits.marks)) or "none"
    number = clock.missing if clock.origin is None else f"Its programs are {clock.kind}: {clock.unit}."
    paragraphs = [
        f"### {name}: {target.words.title}",
        target.words.about,
        inspect.cleandoc(target.__doc__ or ""),
        f"Marks: {marks}. Locations: {', '.join(limits.locations)}. {number}",
        target.words.play,
    ]
    return "\n\n".join(filter(None, paragraphs)).replace("``", "`") + "\n"


def _agent(name: str) -> str:
    try:
        agent = plugins.load("dojo.agents", name)
    except plugins.Unusable as fault:
        return f"- `{name}`: {fault}\n"
    return f"- `{name}`: {agent.about}\n"


def _kernel(name: str) -> str:
    kernel = kernels.get(name)
    sizes = "x".join(kernel.parameters)
    shape = "x".join(map(str, kernel.shapes[0]))
    text = kernel.text(kernel.shapes[0]).rstrip()
    return (
        f"### {name}: {kernel.title}\n\n`{kernel.formula}`, for {sizes}, say {shape}:\n\n```\n{text}\n```\n"
    )
