"""The networks of ``benchmarks.networks``, each by the name that it has there.

The architectures are those of ``transformers``, of its configurations alone; nothing is downloaded.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn

POSITIONS = 128
Made = tuple[nn.Module, tuple[Tensor, ...]]


class _Only(nn.Module):  # type: ignore[misc]
    """A model of ``transformers`` as a function of one tensor that gives one tensor."""

    def __init__(self, model: nn.Module, argument: str, result: str, **settings: Any) -> None:
        super().__init__()
        self.model, self._argument, self._result, self._settings = model, argument, result, settings

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.model(**{self._argument: x}, **self._settings)[self._result]
        return result


class _Recurrent(nn.Module):  # type: ignore[misc]
    """The states of the last layer of an LSTM."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.lstm(x)[0]
        return result


def _tokens(vocabulary: int) -> Tensor:
    return torch.randint(vocabulary, (1, POSITIONS))


def bert() -> Made:
    config = transformers.BertConfig(num_hidden_layers=2)
    model = transformers.BertModel(config, add_pooling_layer=False)
    return _Only(model, "input_ids", "last_hidden_state"), (_tokens(config.vocab_size),)


def vit() -> Made:
    config = transformers.ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536)
    model = transformers.ViTModel(config, add_pooling_layer=False)
    return _Only(model, "pixel_values", "last_hidden_state"), (torch.randn(1, 3, 224, 224),)


def resnet() -> Made:
    config = transformers.ResNetConfig(
        layer_type="basic", hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], num_labels=1000
    )
    model = transformers.ResNetForImageClassification(config)
    return _Only(model, "pixel_values", "logits"), (torch.randn(1, 3, 224, 224),)


def gpt2() -> Made:
    config = transformers.GPT2Config(use_cache=False)
    model = transformers.GPT2LMHeadModel(config)
    return _Only(model, "input_ids", "logits"), (_tokens(config.vocab_size),)


def llama() -> Made:
    config = transformers.LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_attention_heads=32, num_key_value_heads=4,
        num_hidden_layers=1, vocab_size=32, use_cache=False,
    )  # fmt: skip
    model = transformers.LlamaModel(config)
    return _Only(model, "inputs_embeds", "last_hidden_state"), (torch.randn(1, POSITIONS, 2048),)


def whisper() -> Made:
    config = transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6)
    config.encoder_ffn_dim = 4 * config.d_model
    model = transformers.WhisperModel(config).get_encoder()
    return _Only(model, "input_features", "last_hidden_state"), (torch.randn(1, 80, 3000),)


def lstm() -> Made:
    return _Recurrent(256, 2), (torch.randn(1, POSITIONS, 256),)
