"""``dojo cost-model``: learn from the records what is worth measuring; tell how well that carries over."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich.markup import escape

from agents.search.cost_model import CostModel, Sampled, held_out, model_file, save
from agents.search.features import FEATURES, features
from dojo_core.cli.records import opened
from dojo_core.cli.terminal import Failure, columns, err, out, print_table
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Records
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.wording import counted

FEWEST = 8  # programs of a workload, for it to teach anything
MOST = 60  # of one workload, from the fastest to the slowest: more tell little and take long to read


def fit_cost_model(
    weights: Annotated[bool, typer.Option("--weights", help="Print what it learned.")] = False,
) -> None:
    """Fit the cost model to this machine's records, and tell how well it ranks a kernel it has not seen.

    Searches use it with --cost-model. Example: [bold]dojo cost-model[/bold]
    """
    with opened() as records:
        samples = sampled(records, this_machine().fingerprint)
    kernels = {each.kernel for each in samples}
    if len(kernels) < 2:
        raise Failure(
            f"A cost model needs {FEWEST} measured programs of two kernels or more, and there are "
            f"{counted(len(kernels), 'kernel')} with so many: tune some first (dojo tune --all)."
        )
    table = columns(
        "kernel, held out", "programs", "rank correlation", right=("programs", "rank correlation")
    )
    correlations = held_out(samples)
    for kernel, (count, correlation) in correlations.items():
        table.add_row(escape(kernel), str(count), f"{correlation:.2f}")
    print_table(table)
    out.print(
        f"Mean {np.mean([c for _, c in correlations.values()]):.2f}: Spearman's correlation between the "
        "times of a kernel's programs and their costs, by a model of all other kernels. 1: the same order; "
        "0: none.",
        style="dim",
        soft_wrap=True,
    )
    model = CostModel.fitted(samples)
    save(model, model_file())
    if weights:
        learned = columns("feature (its logarithm)", "weight", right=("weight",))
        for name, weight in sorted(zip(FEATURES, model.weights, strict=True), key=lambda each: -abs(each[1])):
            learned.add_row(name, f"{weight:.3f}")
        print_table(learned)
    err.print(f"Saved {escape(str(model_file()))}.", style="dim", soft_wrap=True)


def sampled(records: Records, fingerprint: str) -> list[Sampled]:
    """Programs of each workload that were measured on a machine, spread from the fastest to the slowest."""
    samples = []
    for kernel, start in records.workloads(DEFAULT_TARGET, fingerprint):
        ranking = records.ranking(start, DEFAULT_TARGET, fingerprint, limit=-1)
        chosen = [ranking[int(n)] for n in np.linspace(0, len(ranking) - 1, min(MOST, len(ranking)))]
        rows, times = [], []
        for record in chosen:
            try:
                rows.append(features(parse(record.program_text)))
            except TextError:  # of an older Dojo
                continue
            times.append(np.log2(record.seconds or 1.0))
        if len(rows) >= FEWEST:
            samples.append(Sampled(kernel, np.array(rows), np.array(times)))
    return samples
