"""KernelBench beside the Dojo: its problems, scaled to this machine, in PyTorch eager, Inductor and the Dojo.

``python -m benchmarks.kernelbench PATH`` takes a checkout of ScalingIntelligence/KernelBench, of which
nothing is copied. Problems run in a process that may crash. One is correct where its outputs agree with
eager's for several seeds by KernelBench's own tolerance, or, where they do not, are about as near as eager's
to what the problem gives in float64; what stays in PyTorch is told. Times are taken in interleaved rounds.
Recurrent layers go to all contenders (``torch._dynamo.config.allow_rnn``).

``--json FILE`` has a row (``Row``) for each problem that was ever run into it, written after each of them.
What is correct there under the same settings is not run again, so that a run that was broken off goes on
where it was; another file, or none, begins anew.

The rule of scaling (``scaled``): the largest whole number among a problem's sizes is halved wherever it
stands, if the problem can still be built, until a run needs at most ``--gflops`` and ``--megabytes``. Where
no number can be halved so, it is halved in one place alone; what is too large even then runs at its smallest.
"""

from __future__ import annotations

import argparse
import ast
import copy
import ctypes
import json
import logging
import math
import statistics
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

import agents.torch_backend  # noqa: F401  (registers the backend)
from benchmarks import kernelbench_report
from benchmarks.guarded import guarded
from dojo_core.files import replace_text

# Of one run: operations, and inputs, weights and outputs together. Some ten milliseconds on two cores, so
# that a problem takes as long here as its own size does on the GPU that it was chosen for.
GFLOPS, MEGABYTES = 8.0, 256.0
TOLERANCE = 1e-4  # KernelBench's, absolute and relative, of f32
SEEDS = 3
ROUND_SECONDS = 0.05
DEADLINE = 600.0  # seconds for one problem


@dataclass
class Row:
    """What came of a problem. ``seconds`` of a run, by contender: the median of the rounds' medians.
    ``settings``: what the results hang on besides the problem."""

    level: int
    name: str
    status: str = "correct"  # or wrong, error, crash, timeout
    message: str = ""
    halvings: int = 0
    stays: list[str] = field(default_factory=list)  # what the log says of PyTorch's part
    compiling: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def problem(self) -> tuple[int, int]:
        """Its level and number."""
        return self.level, _number(self.name)


# ---------------------------------------------------------------------------- problems


class _Sizes(ast.NodeTransformer):
    """Puts numbers in the place of the whole numbers that stand outside of functions and classes."""

    def __init__(self, chosen: dict[int, int]) -> None:
        self.chosen, self.found = chosen, list[int]()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is not int:
            return node
        self.found.append(node.value)
        return ast.copy_location(ast.Constant(self.chosen.get(len(self.found) - 1, node.value)), node)


def problem(source: str, chosen: dict[int, int]) -> tuple[dict[str, Any], list[int]]:
    """The names of a problem's file, with other sizes; and the sizes as it has them."""
    sizes = _Sizes(chosen)
    tree = ast.fix_missing_locations(sizes.visit(ast.parse(source)))
    names: dict[str, Any] = {"__name__": "problem"}
    exec(compile(tree, "problem", "exec"), names)
    return names, sizes.found


def made(names: dict[str, Any]) -> tuple[torch.nn.Module, list[Any]]:
    """The model and inputs of a problem."""
    init = names["get_init_inputs"]()
    model = (
        names["Model"](**init[1]) if len(init) == 2 and isinstance(init[1], dict) else names["Model"](*init)
    )
    return model, names["get_inputs"]()


def _layer_flops(
    x: Sequence[int], of_input: Sequence[int], of_history: Sequence[int], *_: Any, **__: Any
) -> int:
    """Of an LSTM's layer, which PyTorch does not count: ``x`` is [T, N, I]."""
    return 2 * x[0] * x[1] * (math.prod(of_input) + math.prod(of_history))


def needs(names: dict[str, Any], run: bool = False) -> tuple[float, float]:
    """GFLOP and MB of a run, by shapes alone; or by a ``run``, for a model that asks for values when it is
    built, or copies parts of itself, as tensors of shapes alone cannot."""
    logging.getLogger("torch._subclasses.fake_tensor").disabled = True  # sizes that do not fit are tried too
    layers: dict[Any, Any] = {torch.ops.aten.mkldnn_rnn_layer: _layer_flops}
    counter = FlopCounterMode(display=False, custom_mapping=layers)
    with nullcontext() if run else FakeTensorMode(), torch.no_grad(), counter as counted:
        model, inputs = made(names)
        outputs = model(*inputs)
    tensors = [*inputs, *model.parameters(), *_several(outputs)]
    size = sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))
    return counted.get_total_flops() / 1e9, size / 1e6


def scaled(source: str, gflops: float, megabytes: float) -> tuple[dict[str, Any], int]:
    """A problem that fits, or the smallest that can be built, and how often a size was halved."""
    names, sizes = problem(source, {})
    chosen, fixed, halvings = dict(enumerate(sizes)), set[tuple[int, int]](), 0
    try:
        need, run = needs(names), False
    except Exception:  # of whatever kind
        need, run = needs(names, run=True), True
    while need[0] > gflops or need[1] > megabytes:
        found = _to_halve(chosen, fixed)
        if found is None:
            break
        key, places = found
        tried = {k: size // 2 if k in places else size for k, size in chosen.items()}
        try:
            other, _ = problem(source, tried)
            less = needs(other, run)
        except Exception:  # of whatever kind a model that cannot be built raises
            less = need
        if less != need and less[0] <= need[0] and less[1] <= need[1]:
            names, chosen, need, halvings = other, tried, less, halvings + 1
        else:
            fixed.add(key)
    return names, halvings


def _to_halve(
    chosen: dict[int, int], fixed: set[tuple[int, int]]
) -> tuple[tuple[int, int], Collection[int]] | None:
    """The places of the largest size that is not fixed, under a key for it; where all are, one place."""
    for size in sorted({size for size in chosen.values() if size > 1}, reverse=True):
        if (size, -1) not in fixed:
            return (size, -1), [k for k, other in chosen.items() if other == size]
    for k, size in sorted(chosen.items(), key=lambda item: -item[1]):
        if size > 1 and (size, k) not in fixed:
            return (size, k), [k]
    return None


# ---------------------------------------------------------------------------- one problem


@contextmanager
def told(stays: list[str]) -> Iterator[None]:
    """Collects what the backend says stays in PyTorch."""
    handler = logging.Handler()
    handler.emit = lambda record: stays.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("agents.torch_backend")
    logger.addHandler(handler)
    propagated, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


def _keep_memory() -> None:
    """Freed memory stays in this process, for all contenders alike: whose results malloc would give back to
    the system, so that each run meets fresh pages, hangs on what else lies beside them."""
    map_most, trim_above, top_more = -4, -1, -2
    with suppress(AttributeError, OSError):  # another libc
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in ((map_most, 0), (trim_above, 2**31 - 1), (top_more, 64 << 20)):
            mallopt(option, value)


def ran(path: Path, settings: Mapping[str, Any]) -> Row:
    """One problem: compiled, held against eager, timed."""
    row = Row(_problem(path)[0], path.stem)
    _keep_memory()
    try:
        names, row.halvings = scaled(path.read_text(), settings["gflops"], settings["megabytes"])
        with told(row.stays), torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
            _compare(names, row, settings["against"], settings["budget"], settings["rounds"])
    except Exception as fault:  # a row says so, and the other problems go on
        row.status, row.message = "error", f"{type(fault).__name__}: {str(fault)[:400]}"
    finally:
        torch.compiler.reset()
    return row


def _compare(names: dict[str, Any], row: Row, others: Sequence[str], budget: int, rounds: int) -> None:
    torch.manual_seed(0)
    model, inputs = made(names)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    options = {"freeze": True}
    compiled: dict[str, Callable[..., Any]] = {"dojo": torch.compile(model, backend="dojo", options=options)}
    if budget:
        compiled["search"] = torch.compile(model, backend="dojo", options={**options, "budget": budget})
    if "inductor" in others:
        compiled["inductor"] = torch.compile(model, options={"freezing": True, "max_autotune": True})
    begin = time.perf_counter()
    compiled["dojo"](*inputs)
    row.compiling = time.perf_counter() - begin
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        inputs = names["get_inputs"]()

        def run(function: Callable[..., Any], inputs: Sequence[Any] = inputs, seed: int = seed) -> Any:
            _restore(model, state)
            torch.manual_seed(seed)  # what a model draws, such as dropout's mask, is the same for all
            return function(*inputs)

        wanted = run(model)
        for name, function in compiled.items():
            ours = run(function)
            apart = _apart(ours, wanted)
            if apart and name != "inductor":
                row.status, row.message = "wrong", f"{name}: {apart}"
                exact = run(copy.deepcopy(model).double(), [_double(x) for x in inputs])
                if not _as_near(ours, wanted, exact):
                    return
                row.status, row.message = "correct", f"{row.message}, as near as eager to float64"
        _restore(model, state)
    if not rounds:
        return
    contenders = {"eager": model, **compiled}
    row.seconds = _timed({name: lambda f=f: f(*inputs) for name, f in contenders.items()}, rounds)


def _restore(model: torch.nn.Module, state: dict[str, torch.Tensor]) -> None:
    """Undo what a run wrote: the running statistics of batches."""
    for key, value in model.state_dict().items():
        if not torch.equal(value, state[key]):
            value.copy_(state[key])


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _as_near(ours: Any, wanted: Any, exact: Any) -> bool:
    """Are results as far from exact ones as those that were wanted are? Two roundings of an ill-conditioned
    problem differ from each other: at most twice as far."""
    errors = [
        max((a - b).abs().max().item() for a, b in zip(_several(each), _several(exact), strict=True))
        for each in (ours, wanted)
    ]
    return errors[0] <= 2 * errors[1]


def _several(results: Any) -> Sequence[torch.Tensor]:
    return results if isinstance(results, (list, tuple)) else [results]


def _apart(ours: Any, wanted: Any) -> str:
    """How results differ, empty where they agree."""
    for mine, theirs in zip(_several(ours), _several(wanted), strict=True):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return f"{mine.dtype} {list(mine.shape)} for {theirs.dtype} {list(theirs.shape)}"
        if not torch.allclose(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            return f"off by {(mine - theirs).abs().max().item():.3g}"
    return ""


def _timed(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Seconds of a run of each, in interleaved rounds."""
    runs = {}
    for name, run in contenders.items():
        run()
        begin = time.perf_counter()
        run()
        runs[name] = max(1, min(1000, int(ROUND_SECONDS / (time.perf_counter() - begin + 1e-9))))
    medians: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            samples = []
            for _ in range(runs[name]):
                begin = time.perf_counter()
                run()
                samples.append(time.perf_counter() - begin)
            medians[name].append(statistics.median(samples))
    return {name: statistics.median(each) for name, each in medians.items()}


# ---------------------------------------------------------------------------- all problems


def table(rows: Sequence[Row]) -> str:
    """What came of all, by level, and a row for each problem."""
    lines = []
    for level in sorted({row.level for row in rows}):
        own = [row for row in rows if row.level == level]
        right = [row for row in own if row.status == "correct"]
        whole = [row for row in right if not row.stays]
        lines.append(
            f"- Level {level}: {len(right)} of {len(own)} correct, {len(whole)} of them whole in the Dojo."
        )
        for name in ("eager", "inductor"):
            ratios = [r.seconds[name] / r.seconds["dojo"] for r in right if name in r.seconds]
            if ratios:
                mean = math.exp(statistics.fmean(map(math.log, ratios)))
                faster = sum(ratio > 1 for ratio in ratios)
                lines.append(
                    f"  Against {name}: {mean:.2f} (geometric mean), faster in {faster} of {len(ratios)}."
                )
    lines += [
        "",
        "| level | problem | halved | eager, ms | inductor, ms | dojo, ms | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        times = [
            f"{row.seconds[n] * 1e3:.3g}" if n in row.seconds else "" for n in ("eager", "inductor", "dojo")
        ]
        note = "; ".join(
            filter(None, (row.status if row.status != "correct" else "", row.message, *row.stays))
        )
        note = note.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {row.level} | {row.name} | {row.halvings} | {' | '.join(times)} | {note} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="a checkout of KernelBench")
    parser.add_argument("--report", action=kernelbench_report.Report, help="what a file of rows comes to")
    parser.add_argument("--levels", default="1,2", help="such as 1,2,3")
    parser.add_argument("--only", default="", help="problems whose file has this in its name")
    parser.add_argument("--every", type=int, default=1, help="one problem of so many: a sample")
    parser.add_argument("--against", default="eager", help="eager,inductor")
    parser.add_argument(
        "--budget", type=int, default=0, help="programs that a search measures for each problem"
    )
    parser.add_argument("--gflops", type=float, default=GFLOPS, help="at most, of one run")
    parser.add_argument("--megabytes", type=float, default=MEGABYTES, help="at most, of one run's tensors")
    parser.add_argument("--rounds", type=int, default=5, help="of times; 0: none are taken")
    parser.add_argument(
        "--jobs", type=int, default=1, help="problems at once; more than 1 is for results alone"
    )
    parser.add_argument("--json", type=Path, help="a file for all rows; goes on where it was")
    given = parser.parse_args()
    folders = [given.path / "KernelBench" / f"level{level}" for level in given.levels.split(",")]
    paths = [path for folder in folders for path in sorted(folder.glob("*.py"), key=_problem)]
    paths = [path for path in paths if given.only in path.name][:: given.every]
    if not paths:
        parser.error(f"{given.path} has no such problem: is it a checkout of KernelBench?")

    settings = {
        "against": sorted(given.against.split(",")),
        "budget": given.budget,
        "rounds": given.rounds,
        "gflops": given.gflops,
        "megabytes": given.megabytes,
    }
    print(table(run_all(paths, settings, given.jobs, given.json)), end="")


def run_all(paths: Sequence[Path], settings: Mapping[str, Any], jobs: int, file: Path | None) -> list[Row]:
    """The problems' rows. Those that the file has as correct under these settings are taken from there, the
    others are put into it as they come."""
    known = {row.problem: row for row in _read(file)}

    def is_open(path: Path) -> bool:
        row = known.get(_problem(path))
        return row is None or row.status != "correct" or row.settings != settings

    left = [path for path in paths if is_open(path)]

    def one(number: int) -> Row:
        return ran(left[number], settings)

    def came(number: int, result: Row | str) -> None:
        path = left[number]
        row = result if isinstance(result, Row) else Row(_problem(path)[0], path.stem, result)
        row.settings = settings
        known[row.problem] = row
        print(f"level {row.level}, {row.name}: {row.status} {row.message}", file=sys.stderr)
        if file is not None:
            rows = [asdict(known[problem]) for problem in sorted(known)]
            replace_text(file, json.dumps(rows, indent=1))

    guarded(one, len(left), DEADLINE, jobs, came)
    return [known[_problem(path)] for path in paths]


def _read(file: Path | None) -> list[Row]:
    return [Row(**row) for row in json.loads(file.read_text())] if file is not None and file.exists() else []


def _problem(path: Path) -> tuple[int, int]:
    """The level and number of a problem's file, ``level1/7_Norm.py``."""
    return int(path.parent.name.removeprefix("level")), _number(path.stem)


def _number(name: str) -> int:
    return int(name.partition("_")[0])


if __name__ == "__main__":
    main()
