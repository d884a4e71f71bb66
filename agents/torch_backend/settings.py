"""What ``torch.compile(model, backend="dojo", options={…})`` may say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dojo_core.program.dependence import POLICIES


@dataclass(frozen=True)
class Settings:
    """``budget``: programs that a search measures, shared by the kernels' share of the time; 0: the heuristic
    pass alone. ``records``: take the best program that is recorded, where there is one. ``freeze``: weights
    are constants. ``policy``: what a kernel may compute otherwise (docs/promises.md)."""

    budget: int = 0
    records: bool = False
    freeze: bool = False
    policy: str = "reassoc"

    @staticmethod
    def of(options: Mapping[str, Any] | None) -> Settings:
        """Raises ValueError, a sentence, for an option that there is not or a value that it cannot have."""
        kinds = {field.name: type(field.default) for field in fields(Settings)}
        for name, value in (options or {}).items():
            if name not in kinds:
                raise ValueError(f"The Dojo has no option {name!r}: it has {', '.join(kinds)}.")
            if type(value) is not kinds[name]:
                raise ValueError(f"The option {name} is of {kinds[name].__name__}, not {value!r}.")
        settings = Settings(**(options or {}))
        if settings.budget < 0:
            raise ValueError(f"The option budget is a number of programs, not {settings.budget}.")
        if settings.policy not in POLICIES:
            raise ValueError(f"The option policy is one of {', '.join(POLICIES)}.")
        return settings
