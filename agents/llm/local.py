"""A language model in a folder, by transformers: nothing is downloaded, and no code of the model's is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from agents.agent import PlayerFailed
from agents.llm.chat import Message, Unheard
from agents.llm.settings import LlmSettings
from agents.outside import Answer

CHARACTERS = 2  # of a program for each token, at the least: what a question may have by the model's own limit


class Local:
    """Asks the model. Raises PlayerFailed where the folder has none that can be loaded."""

    def __init__(self, settings: LlmSettings) -> None:
        self.settings = settings
        folder = Path(settings.model)
        transformers.utils.logging.disable_progress_bar()
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
            self._model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype="auto", use_safetensors=True, **options
            ).eval()
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as fault:
            why = " ".join(str(fault).split())[:200]
            raise PlayerFailed(f"transformers cannot load the model in {folder}: {why}") from None
        positions = getattr(self._model.config, "max_position_embeddings", None)
        self._positions = positions if isinstance(positions, int) else None

    def room(self, most: int) -> int:
        """How many characters a question may have that leaves place for an answer."""
        if self._positions is None:
            return most
        left = self._positions - min(self.settings.answer, self._positions // 4)
        return min(most, CHARACTERS * left)

    def ask(
        self, messages: Sequence[Message], most: int, seconds: float, stopped: Callable[[], bool]
    ) -> Answer:
        """An answer of at most ``most`` tokens; what is not said within ``seconds`` is left unsaid.

        Raises PlayerFailed, and Unheard.
        """
        began = time.monotonic()
        inputs = self._tokenizer(self._text(messages), return_tensors="pt", add_special_tokens=False)
        read = int(inputs["input_ids"].shape[1])
        if self._positions is not None:
            most = min(most, self._positions - read)
            if most < 1:
                raise PlayerFailed(
                    f"The model reads {self._positions:,} tokens, and this position takes {read:,}: take a "
                    "model that reads more, or a smaller kernel."
                )
        end = began + min(seconds, self.settings.timeout)

        def over(*_: Any, **__: Any) -> bool:
            return time.monotonic() > end or stopped()

        sampled = self.settings.temperature or 0.0
        choice: dict[str, Any] = {"do_sample": sampled > 0}
        if sampled > 0:
            choice["temperature"] = sampled
        with torch.inference_mode():
            made = self._model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                max_new_tokens=most,
                pad_token_id=self._tokenizer.pad_token_id or self._tokenizer.eos_token_id or 0,
                stopping_criteria=transformers.StoppingCriteriaList([_Over(over)]),
                **choice,
            )
        if stopped():
            raise Unheard
        said = made[0, read:]
        words = self._tokenizer.decode(said, skip_special_tokens=True)
        written = int(said.shape[0])
        took = round(time.monotonic() - began, 3)
        return Answer(words, read, written, True, self.settings.cost(read, written), took)

    def _text(self, messages: Sequence[Message]) -> str:
        """In the model's own form of a conversation, where its tokenizer has one."""
        if self._tokenizer.chat_template:
            text: str = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
            )
            return text
        return "\n\n".join(message["content"] for message in messages) + "\n\n"


class _Over(transformers.StoppingCriteria):  # type: ignore[misc]
    """Ends an answer once nobody waits for more of it."""

    def __init__(self, over: Callable[[], bool]) -> None:
        self._over = over

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        return torch.full((input_ids.shape[0],), self._over(), dtype=torch.bool, device=input_ids.device)
