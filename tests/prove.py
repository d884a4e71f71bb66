"""Random walks for as long as asked: ``python -m tests.prove SECONDS [SEED]``, or ``make prove SECONDS=600``.

Prints the seed, the walks, the moves per transformation and every finding with its smallest reproducer; ends
with 1 where there is one. Then the share of moves refused for reasons of meaning that the oracle would let
through, per transformation.
"""

from __future__ import annotations

import random
import sys
import time

from dojo_core.moves import REGISTRY
from dojo_core.program.tree import Program
from dojo_core.program.validity import storage_fault
from tests import oracle, sanitized
from tests.ends import End, differences, sanitizers_complaint
from tests.programs import SMALL, random_program
from tests.walks import (
    Finding,
    Rules,
    Tally,
    smallest,
    start,
    start_at_a_chain,
    start_at_an_example,
    start_at_temporaries,
    start_on_a_gpu,
    start_on_a_snitch,
    start_with_long_rows,
    stroll,
    walk_from,
)

# A walk begins at a random program or a small kernel, some on a GPU or on a Snitch core, some behind the
# example of a move, some where a sum may be taken in one pass or a temporary taken away.
STARTS = (
    start, start, start_on_a_gpu, start_at_an_example, start, start_on_a_gpu, start_on_a_snitch,
    start_at_temporaries, start_at_a_chain,
)  # fmt: skip
TOGETHER = 8  # ends of walks that are compiled as one file of C
SANITIZED = 3  # every so many files are compiled with sanitizers too
# After each walk some without the oracle, which takes most of the time, so that many ends are compiled.
STROLLS = (start, start, start_at_a_chain, start_with_long_rows)


def prove(seconds: float, seed: int) -> tuple[Tally, list[Finding]]:
    """Walks and judged storage until the time is over; findings of one kind and move once each."""
    tally = Tally()
    findings: dict[tuple[str, str], Finding] = {}

    def judged(program: Program, allowed: bool, seen: oracle.Outcome) -> None:
        """Each choice of storage, also those that no move leads to."""
        tally.judged["(storage of random programs)"] += 1
        if allowed and seen.fault is not None:
            findings.setdefault(
                ("validity", seen.fault.split()[0]),
                Finding("validity", Rules("reassoc"), program.text, "", seen.fault),
            )
        if not allowed:
            tally.refused["(storage of random programs)"] += 1
            if seen.fault is None:
                tally.cautious["(storage of random programs)"] += 1
                fault = storage_fault(program)
                assert fault is not None
                tally.causes["(storage of random programs)", fault.code] += 1
                kept = tally.examples.setdefault(("(storage of random programs)", fault.code), [])
                kept.append((fault.sentence, program.text))

    def compile_ends() -> None:
        """Compile the ends gathered so far and run them on inputs that nobody drew kindly."""
        tally.compiled += len(ends)
        for which, difference in differences(ends, seed):
            finding = Finding("code", Rules(ends[which].policy), ends[which].first.text, "", difference)
            findings[f"code {tally.compiled}", str(which)] = finding
            print(f"before walk {seed}.{number}: {finding}", flush=True)
        if tally.compiled // TOGETHER % SANITIZED == 0 and not sanitized.missing():
            tally.sanitized += len(ends)
            complaint = sanitizers_complaint(ends, seed)
            if complaint:
                texts = "\n".join(end.last.text for end in ends)
                findings[f"sanitizer {tally.compiled}", ""] = Finding("code", Rules(""), texts, "", complaint)
                print(f"before walk {seed}.{number}: {complaint}\n{texts}", flush=True)
        ends.clear()

    ends: list[End] = []
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        rng = random.Random(f"{seed}.{number}")
        number += 1
        random_program(rng, judged)
        first, rules = STARTS[number % len(STARTS)](rng)
        last, finding = walk_from(
            first, rules, rng, tally, rng.randint(10, 40), None, caution=number % 4 == 0, until=end
        )
        if finding is None and rules.target is SMALL:
            ends.append(End(first, rules.policy, last))
        elif finding is not None:
            key = finding.kind, finding.move.split(" ")[0]
            if key not in findings:
                findings[key] = smallest(finding)
                print(f"walk {seed}.{number - 1}: {findings[key]}", flush=True)
        for begin in STROLLS:
            first, rules = begin(rng)
            ends.append(End(first, rules.policy, stroll(first, rules, rng, rng.randint(4, 24), tally)))
        if len(ends) >= TOGETHER:
            compile_ends()
    return tally, list(findings.values())


def table(tally: Tally) -> str:
    """Rows per transformation: moves played, results judged, inverses that restore the program and that do
    not, refusals for reasons of meaning, needless ones, and their share."""
    rows = [("transformation", "played", "judged", "inverted", "not", "refused", "needlessly", "%")]
    for name in (*REGISTRY, "(storage of random programs)"):
        counts = tally.played, tally.judged, tally.inverted, tally.lost, tally.refused, tally.cautious
        share = _share(tally.cautious[name], tally.refused[name])
        rows.append((name, *(str(c[name]) for c in counts), share))
    totals = tally.played, tally.judged, tally.inverted, tally.lost, tally.refused, tally.cautious
    sums = [sum(c.values()) for c in totals]
    rows.append(("all", *map(str, sums), _share(sums[-1], sums[-2])))
    widths = [max(len(r[k]) for r in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )


def _share(needless: int, refused: int) -> str:
    return f"{100 * needless / refused:.0f}" if refused else ""


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) if arguments else 60
    seed = int(arguments[1]) if len(arguments) > 1 else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}, {seconds:g} seconds", flush=True)
    tally, findings = prove(seconds, seed)
    counted = (
        f"{tally.walks} walks, {sum(tally.played.values())} moves, {tally.compiled} ends compiled and run, "
        f"{tally.sanitized} under sanitizers"
    )
    print(f"{counted}\n{table(tally)}")
    for (name, code), count in tally.causes.most_common(12):
        shown, text = min(tally.examples[name, code], key=lambda e: len(e[1]))
        print(f"\n{count} needless refusals of {name} ({code}), for example {shown}\n{text}")
    print(f"{len(findings)} findings")
    for finding in findings:
        print(f"\n{finding}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
