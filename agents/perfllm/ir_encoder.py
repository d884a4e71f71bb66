"""Our own encoder of programs: an encoder of lines under a light encoder of the sequence of lines.

A move changes a line or two, so the lines of a position's successors are nearly all known: each is encoded
once and kept by its text. What remains for each successor is two layers over some forty vectors.

What a program costs is counts and products of sizes, which means and attention alone cannot tell. So both
levels end in soft counts, log(1 + Σ relu), too; a line adds up the logarithms of the sizes in it, each as its
token's state weighs it, and hears of the scopes above it; and a program adds up its lines by log Σ exp, which
makes sums of products of logarithms.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from agents.perfllm import settings
from agents.perfllm.lines import PAD, lines_of, values, vocabulary
from dojo_core.bounded_json import NotJson, read_json, read_object
from dojo_core.files import naming, write_text

WEIGHTS = Path(settings.WEIGHTS)
TENSORS = "model.safetensors"
ROWS = (
    8  # of a batch, always: what a row becomes must not depend on how many others there are; few, to pad few
)
KEPT = 200_000  # lines kept at most

Line = tuple[tuple[int, ...], tuple[int, ...]]  # its tokens, and those of the scopes above it


@dataclass(frozen=True)
class IRConfig:
    """Sizes of the encoder. ``program_size`` is the embedding's."""

    vocab_size: int = len(vocabulary())
    line_size: int = 96
    line_layers: int = 2
    program_size: int = 192
    program_layers: int = 2
    head_size: int = 32
    products: int = 48
    max_tokens: int = 64
    max_lines: int = 160

    @property
    def vector_size(self) -> int:
        """Of what a line by itself is told as: mean, most, counts, sizes."""
        return 3 * self.line_size + self.products

    @property
    def above_size(self) -> int:
        """Of what the scopes above a line are told as: their tokens, the logarithm of their product."""
        return self.line_size + 1


class _Layer(nn.Module):
    """A transformer layer, normalised before attention and before the two dense layers."""

    def __init__(self, size: int, head_size: int) -> None:
        super().__init__()
        self.heads = size // head_size
        self.before, self.between = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attend, self.project = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.widen, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x: [rows, length, size]; mask: [rows, 1, 1, length], True where there is something."""
        rows, length, size = x.shape
        shaped = self.attend(self.before(x)).view(rows, length, 3, self.heads, -1)
        q, k, v = shaped.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.project(seen.transpose(1, 2).reshape(rows, length, size))
        out: Tensor = x + self.narrow(nn.functional.gelu(self.widen(self.between(x))))
        return out


def _draw_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=module.in_features**-0.5)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)


class IRModel(nn.Module):
    """Token numbers of lines → vectors of lines → an embedding of the program."""

    def __init__(self, config: IRConfig) -> None:
        super().__init__()
        self.config = config
        line, program = config.line_size, config.program_size
        self.tokens = nn.Embedding(config.vocab_size, line, padding_idx=PAD)
        self.token_places = nn.Embedding(config.max_tokens, line)
        self.line_layers = nn.ModuleList(_Layer(line, config.head_size) for _ in range(config.line_layers))
        self.line_norm = nn.LayerNorm(line)
        self.token_counts = nn.Linear(line, line)
        self.token_sizes = nn.Linear(line, config.products)
        self.register_buffer("values", torch.tensor(values()) * math.log(2))
        width = config.vector_size + config.above_size
        self.widen = nn.Linear(width, program)
        self.line_places = nn.Embedding(config.max_lines, program)
        self.whole = nn.Parameter(torch.zeros(program))
        self.program_layers = nn.ModuleList(
            _Layer(program, config.head_size) for _ in range(config.program_layers)
        )
        self.program_norm = nn.LayerNorm(program)
        self.line_counts = nn.Linear(program, program)
        self.plain_counts = nn.Linear(width, program)
        self.line_products = nn.Linear(width, config.products)
        self.out = nn.Linear(4 * program + config.products, program)
        self.apply(_draw_weights)

    def encode_tokens(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """ids [lines, tokens] → (states [lines, tokens, line size], vectors [lines, vector size])."""
        present = ids != PAD
        x = self.tokens(ids) + self.token_places.weight[: ids.shape[1]]
        for layer in self.line_layers:
            x = layer(x, present[:, None, None, :])
        x = self.line_norm(x)
        weight = present[..., None].to(x.dtype)
        mean = (x * weight).sum(1) / weight.sum(1).clamp_min(1)
        most = x.masked_fill(~present[..., None], -1e4).amax(1)
        count = (torch.relu(self.token_counts(x)) * weight).sum(1).log1p()
        sizes = (torch.relu(self.token_sizes(x)) * self.values[ids][..., None]).sum(1)
        return x, torch.cat([mean, most, count, sizes], dim=-1)

    def encode_above(self, ids: Tensor) -> Tensor:
        """Tokens of the scopes above lines [lines, tokens] → [lines, above size]. Padding behind others
        counts for nothing; alone it stands for no scope."""
        present = ids != PAD
        present[:, 0] = True
        added = (self.tokens(ids) * present[..., None]).sum(1)
        return torch.cat([added, self.values[ids].sum(1, keepdim=True)], dim=-1)

    def encode_lines(self, inputs: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """inputs [programs, lines, vector + above size], of each line its vector and what is above it, and
        present [programs, lines] → (states of the lines [programs, lines, program size], embeddings
        [programs, program size])."""
        x = self.widen(inputs) + self.line_places.weight[: inputs.shape[1]]
        x = torch.cat([self.whole.expand(len(x), 1, -1), x], dim=1)
        mask = torch.cat([present.new_ones(len(x), 1), present], dim=1)
        for layer in self.program_layers:
            x = layer(x, mask[:, None, None, :])
        x = self.program_norm(x)
        weight = present[..., None].to(x.dtype)
        mean = (x[:, 1:] * weight).sum(1) / weight.sum(1).clamp_min(1)
        count = (torch.relu(self.line_counts(x[:, 1:])) * weight).sum(1).log1p()
        plain = (torch.relu(self.plain_counts(inputs)) * weight).sum(1).log1p()
        products = self.line_products(inputs).masked_fill(~present[..., None], -1e4).logsumexp(1)
        return x[:, 1:], self.out(torch.cat([x[:, 0], mean, count, plain, products / 8], dim=-1))


class LineByLine:
    """The model in use: programs' texts in, embeddings out, each line encoded once.

    Batches have fixed sizes, so that the same text gives the same embedding, whatever else is asked with it.
    """

    def __init__(self, model: IRModel) -> None:
        self.model = model.eval().float()
        self._vectors: OrderedDict[tuple[int, ...], Tensor] = OrderedDict()
        self._above: OrderedDict[tuple[int, ...], Tensor] = OrderedDict()

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> Tensor:
        """float32 [texts, program size]."""
        config = self.model.config
        programs = [lines_of(text, config.max_tokens, config.max_lines) for text in texts]
        self._encode(dict.fromkeys(line for program in programs for line in program.lines))
        self._encode_above(above for program in programs for above in program.above)
        embeddings: list[Tensor] = [torch.empty(0)] * len(programs)
        for length, numbers in _by_length([len(p.lines) for p in programs], config.max_lines).items():
            for begin in range(0, len(numbers), ROWS):
                batch = numbers[begin : begin + ROWS]
                inputs = torch.zeros(ROWS, length, config.vector_size + config.above_size)
                present = torch.zeros(ROWS, length, dtype=torch.bool)
                present[len(batch) :, 0] = True
                for row, number in enumerate(batch):
                    lines, scopes = programs[number].lines, programs[number].above
                    present[row, : max(1, len(lines))] = True
                    if lines:
                        inputs[row, : len(lines), : config.vector_size] = torch.stack(
                            [self._vectors[line] for line in lines]
                        )
                        inputs[row, : len(lines), config.vector_size :] = torch.stack(
                            [self._above[each] for each in scopes]
                        )
                _, embedded = self.model.encode_lines(inputs, present)
                for row, number in enumerate(batch):
                    embeddings[number] = embedded[row]
        for cache in (self._vectors, self._above):
            while len(cache) > KEPT:
                cache.popitem(last=False)
        return torch.stack(embeddings) if embeddings else torch.zeros(0, config.program_size)

    @property
    def line_size(self) -> int:
        """Of the vector of a line: what it is by itself, and what is above it."""
        return int(self.model.config.vector_size + self.model.config.above_size)

    def known(self, text: str) -> tuple[Line, ...]:
        """The lines of a text, each with the scopes above it."""
        config = self.model.config
        program = lines_of(text, config.max_tokens, config.max_lines)
        return tuple(zip(program.lines, program.above, strict=True))

    @torch.no_grad()
    def summed(self, lines: Sequence[Line]) -> Tensor:
        """The sum of the vectors of lines: float32 [line_size], of none zeros."""
        self._encode(dict.fromkeys(line for line, _ in lines))
        self._encode_above(above for _, above in lines)
        total = torch.zeros(self.line_size)
        for line, above in lines:
            total += torch.cat([self._vectors[line], self._above[above]])
        return total

    def _encode_above(self, scopes: Iterable[tuple[int, ...]]) -> None:
        for above in dict.fromkeys(scopes):
            if above not in self._above:
                self._above[above] = self.model.encode_above(torch.tensor([above or (PAD,)]))[0]

    def _encode(self, lines: dict[tuple[int, ...], None]) -> None:
        new = [line for line in lines if line not in self._vectors]
        for length, numbers in _by_length([len(n) for n in new], self.model.config.max_tokens).items():
            for begin in range(0, len(numbers), ROWS):
                batch = [new[n] for n in numbers[begin : begin + ROWS]]
                ids = torch.full((ROWS, length), PAD)
                for row, line in enumerate(batch):
                    ids[row, : len(line)] = torch.tensor(line)
                ids[len(batch) :, 0] = 1
                _, vectors = self.model.encode_tokens(ids)
                self._vectors.update(zip(batch, vectors, strict=False))


def _by_length(lengths: Sequence[int], most: int) -> dict[int, list[int]]:
    """Which have which length, rounded up to a multiple of 8."""
    groups: dict[int, list[int]] = {}
    for number, length in enumerate(lengths):
        groups.setdefault(min(most, max(8, -(-length // 8) * 8)), []).append(number)
    return groups


def save(model: IRModel, folder: Path) -> None:
    """Sizes and vocabulary as JSON, weights as safetensors in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    with naming(folder):
        save_file({name: tensor.half() for name, tensor in model.state_dict().items()}, folder / TENSORS)
    write_text(folder / "config.json", json.dumps(asdict(model.config), indent=2) + "\n")
    write_text(folder / "vocabulary.json", json.dumps(vocabulary()) + "\n")


def load(folder: Path = WEIGHTS) -> IRModel:
    """A saved model, in single precision. Raises ValueError with a sentence where it does not fit."""
    if not (folder / TENSORS).exists():
        raise ValueError(f"There are no weights in {folder}: run dojo train-encoder --out {folder}.")
    words = folder / "vocabulary.json"
    if not words.exists() or read_json(words.read_bytes()) != list(vocabulary()):
        raise ValueError(f"The weights in {folder} are for another vocabulary: run dojo train-encoder.")
    try:
        sizes = read_object((folder / "config.json").read_bytes())
        tensors = load_file(folder / TENSORS)
    except (OSError, NotJson, SafetensorError) as fault:
        raise ValueError(
            f"The weights in {folder} cannot be read ({fault}): run dojo train-encoder."
        ) from fault
    if "token_sizes.weight" not in tensors:
        raise ValueError(f"The weights in {folder} are of an earlier encoder: run dojo train-encoder.")
    with torch.random.fork_rng(devices=[]):  # what others draw does not hang on a model that is loaded
        model = IRModel(IRConfig(**{f.name: sizes[f.name] for f in fields(IRConfig) if f.name in sizes}))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as fault:
        raise ValueError(f"The weights in {folder} are of other sizes: run dojo train-encoder.") from fault
    return model
