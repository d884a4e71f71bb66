"""Seven networks with random weights, at sizes that two cores take: a batch of one, some 128 positions.

They are made in ``benchmarks.architectures``: who reads of them here need not wait for PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.architectures import Made


@dataclass(frozen=True)
class Network:
    """``about``: what it is and its sizes."""

    name: str
    about: str

    def made(self, seed: int = 0) -> Made:
        """The model in evaluation, and its inputs; the same for the same seed."""
        import torch

        from benchmarks import architectures

        torch.manual_seed(seed)
        model, inputs = getattr(architectures, self.name)()
        return model.eval(), inputs


NETWORKS = {
    network.name: network
    for network in (
        Network("bert", "BERT-base, 2 of its 12 layers: 128 tokens, 768 wide, 12 heads"),
        Network("vit", "ViT-small: image of 224x224 in patches of 16, 12 layers, 384 wide, 6 heads"),
        Network("resnet", "ResNet-18: image of 224x224, 1000 classes"),
        Network("gpt2", "GPT-2-small: 128 tokens, 12 layers, 768 wide, logits of 50257 words"),
        Network("llama", "A Llama-style block: 128 tokens, 2048 wide, 5632 inside, 32 heads, 4 of keys"),
        Network("whisper", "Whisper's encoder, tiny: 3000 frames of 80, 4 layers, 384 wide, 6 heads"),
        Network("lstm", "LSTM: 128 steps, 2 layers, 256 wide"),
    )
}
