"""Random legal walks, each position judged by the oracle: what ``test_walks.py`` and ``prove.py`` share."""

from __future__ import annotations

import math
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from dojo_core import IllegalMove, Move, apply, blocked_moves, kernels, legal_moves, parse
from dojo_core.moves import REGISTRY, algorithms, inverse, parse_move
from dojo_core.moves.core import Argument, Context, Refusal
from dojo_core.moves.examples import example
from dojo_core.moves.legality import all_candidates, context, is_legal, outcome
from dojo_core.moves.places import Place, fresh_name
from dojo_core.program.difference import on_heap
from dojo_core.program.expressions import RESERVED, TextError
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.interpret import interpret
from dojo_core.program.marks import mark_fault
from dojo_core.program.target import Target
from dojo_core.program.tree import NUMBER_DTYPES, Node, Op, Program, Scope, splice, walk
from dojo_core.program.validity import definition_fault, storage_fault
from tests import oracle, snitch
from tests.compiled import random_inputs
from tests.gpu import TINY, mapped
from tests.lenient import forced
from tests.programs import SMALL, random_chain, random_program
from tests.temporaries import TAKING, random_temporaries

# Other terms, the same numbers.
ONE_PASS = ("expand_moment", "sum_squares_again", "online_rescale", "sum_exp_again", "bilinear")
OTHER_TERMS = (
    "Not the same terms. Does the move stand on an equation that the oracle does not know? "
    'CONTRIBUTING.md, "Add a move", says where it learns one. The program after, then before:'
)
ASKED = 6  # of a position's refusals of one transformation for one reason: would they have been right?
FEW = 2_000, 50_000  # instances and cells of an example: the oracle runs each, and looks at each
POLICIES = ("reassoc", "algebraic", "algebraic", "strict")
KERNELS = {
    "softmax": (4, 8), "layernorm": (2, 4), "rmsnorm": (3, 4), "batchnorm": (2, 2, 2, 4), "matmul": (2, 4, 3),
    "bmm": (2, 2, 3, 2), "conv": (1, 2, 2, 4, 4, 3), "relu_ffn": (2, 2, 2, 4), "swiglu": (1, 2, 4, 2),
    "reducemean": (4, 6), "qmatmul": (2, 4, 4), "matmul_bf16": (2, 3, 4),
}  # fmt: skip
LONG_ROWS = {
    "softmax": (3, 20_000), "layernorm": (3, 30_000), "rmsnorm": (3, 30_000), "batchnorm": (2, 2, 150, 150),
    "reducemean": (4, 50_000), "matmul": (3, 4, 20_000),
}  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """What a walk is played under."""

    policy: str
    target: Target = SMALL


@dataclass(frozen=True)
class Finding:
    """Something that must not be. ``move`` played on ``text`` shows it; empty: the text alone does."""

    kind: str  # meaning, storage, marks, text, door, inverse, listing, crash, code
    rules: Rules
    text: str
    move: str
    told: str

    def __str__(self) -> str:
        played = f" by {self.move}" if self.move else ""
        return (
            f"{self.kind} ({self.rules.policy}, {self.rules.target.name}){played}: {self.told}\n{self.text}"
        )


@dataclass
class Tally:
    """What a run covered."""

    walks: int = 0
    played: Counter[str] = field(default_factory=Counter)  # moves of the walks
    judged: Counter[str] = field(default_factory=Counter)  # legal moves whose result the oracle saw
    inverted: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)  # an inverse that would not restore the program
    refused: Counter[str] = field(default_factory=Counter)  # for reasons of meaning
    cautious: Counter[str] = field(default_factory=Counter)  # of these: the oracle would have let through
    causes: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)
    compiled: int = 0  # ends of walks that ran as C
    sanitized: int = 0  # ... of them with sanitizers


def numbers_differ(before: Program, after: Program) -> str:
    """How two programs differ in float64 on normal inputs: for rewrites that the oracle tells apart."""
    inputs = random_inputs(before)
    first, second = interpret(before, inputs), interpret(after, inputs)
    written = oracle.run(before, "algebraic").outputs
    for name, wanted in first.items():
        # Undefined elements are garbage in both; infinities and NaN end the rewrites' stated domain.
        defined = np.array([term != oracle.POISON for term in written[name]]).reshape(wanted.shape)
        usual = np.isfinite(wanted) & defined
        if not np.isfinite(second[name][usual]).all():
            return f"{name} is no longer finite"
        off = np.abs(second[name] - wanted)[usual]
        if off.size and off.max() > 1e-9 * max(1.0, np.abs(wanted[usual]).max()):
            return f"{name} is off by {off.max():g}"
    return ""


def _told(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r} in {frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}"


def judge(
    program: Program, move: Move, rules: Rules, tally: Tally | None = None, terms: oracle.Terms | None = None
) -> Finding | None:
    """Play a move on a valid program and look at the result from all sides. None: all is well, or refused."""

    def found(kind: str, told: str) -> Finding:
        return Finding(kind, rules, program.text, str(move), told)

    terms = terms or oracle.Terms()
    try:
        result = apply(program, move, rules.target, rules.policy)
    except IllegalMove:
        return None
    except Exception as error:
        return found("crash", _told(error))
    if tally is not None:
        tally.judged[move.name] += 1
    try:
        before, after = oracle.run(program, rules.policy, terms), oracle.run(result, rules.policy, terms)
        if after.fault is not None:
            return found("storage", f"{after.fault}\n{result.text}")
        if move.name in ONE_PASS:
            told = numbers_differ(program, result)
            if told:
                return found("meaning", f"{told}\n{result.text}")
        elif list(before.outputs.values()) != list(after.outputs.values()):
            return found("meaning", f"{OTHER_TERMS}\n{result.text}")
        fault = storage_fault(result) or mark_fault(result, rules.target, rules.policy)
        if fault is not None:
            return found("marks", fault.sentence)
        try:
            again = parse(result.text)
        except TextError as error:
            return found("text", str(error))
        if again != result or again.text != result.text:
            return found("text", f"reads back as\n{again.text}")
        unset = definition_fault(again)
        if unset is not None and definition_fault(program) is None:
            return found("door", unset.sentence)
        if parse_move(str(move)) != move:
            return found("text", "the move's text is another move")
        back = inverse(program, move, rules.target, rules.policy)
        if back is None:
            here = context(program, rules.target, rules.policy)
            if tally is not None and REGISTRY[move.name].inverse(here, move.arguments, result) is not None:
                tally.lost[move.name] += 1
            return None
        if tally is not None:
            tally.inverted[move.name] += 1
        try:
            restored = apply(result, back, rules.target, rules.policy)
        except IllegalMove as error:
            return found("inverse", f"{error}\n{result.text}")
        if restored != program:
            return found("inverse", f"{back} gives\n{restored.text}")
    except Exception as error:
        return found("crash", _told(error))
    return None


def listing_fault(program: Program, rules: Rules) -> Finding | None:
    """Every listed move applies, every blocked one is refused for the same reason."""
    for move in legal_moves(program, rules.target, rules.policy):
        finding = _listed(program, move, None, rules)
        if finding is not None:
            return finding
    for move, refusal in blocked_moves(program, rules.target, rules.policy):
        finding = _listed(program, move, refusal, rules)
        if finding is not None:
            return finding
    return None


def _listed(program: Program, move: Move, refusal: Refusal | None, rules: Rules) -> Finding | None:
    try:
        result = outcome(context(program, rules.target, rules.policy), move)
    except Exception as error:
        return Finding("crash", rules, program.text, str(move), _told(error))
    if isinstance(result, Refusal) and refusal is not None and result.code == refusal.code:
        return None
    if isinstance(result, Program) and refusal is None:
        return None
    told = str(result) if isinstance(result, Refusal) else f"listed as blocked: {refusal}"
    return Finding("listing", rules, program.text, str(move), told)


def off_the_grid(program: Program, target: Target, rng: random.Random) -> Iterator[Move]:
    """Moves with arguments of the right kind and any value: places, numbers and names that no list offers."""
    places: list[Place] = []
    for leaf_number, leaf in enumerate(program.leaves):
        array = leaf.op.target.array
        number = sum(o.op.target.array == array for o in program.leaves[:leaf_number])
        places += [Place(array, number, d) for d in (None, *range(len(leaf.scopes)))]
    buffers = [b.name for b in program.buffers]
    arrays = list(program.buffer_of)
    while True:
        transformation = rng.choice(list(REGISTRY.values()))
        arguments: list[Argument] = []
        for parameter in transformation.parameters:
            kind = parameter.kind
            if kind in ("scope", "reduction"):
                arguments.append(rng.choice([p for p in places if p.depth is not None] or [Place("y", 0, 0)]))
            elif kind == "op":
                arguments.append(rng.choice([p for p in places if p.depth is None]))
            elif kind == "node":
                arguments.append(rng.choice(places))
            elif kind == "buffer":
                arguments.append(rng.choice(buffers + arrays))
            elif kind == "location":
                if not parameter.optional or rng.random() < 0.4:
                    arguments.append(rng.choice((*target.locations, "heap", "shared", "ssr")))
            elif kind == "name":
                taken = transformation.name in TAKING or rng.random() < 0.1
                words = buffers + arrays + sorted(RESERVED)
                arguments.append(rng.choice(words) if taken else fresh_name(program, "n"))
            elif kind == "instruction":
                arguments.append(rng.choice((*INSTRUCTIONS, "fly")))
            elif kind == "algorithm":
                arguments.append(rng.choice((*algorithms.names(), "guessed")))
            elif kind == "mode":
                arguments.append(rng.choice(("guard", "free")))
            elif kind == "region":
                arguments.append(rng.choice(["root", *(p for p in places if p.depth is not None)]))
            elif kind == "access":
                leaf = rng.choice(program.leaves)
                access = rng.choice((leaf.op.target, *leaf.op.reads))
                arguments.append(str(access))
            elif kind == "number":
                arguments.append(rng.choice((0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 2**31, 2**63)))
            else:
                arguments += rng.sample(range(4), rng.choice((1, 1, 2, 2, 3)))
        yield Move(transformation.name, tuple(arguments))


def start(rng: random.Random) -> tuple[Program, Rules]:
    """A random program or a small kernel, and what it is played under: on a CPU."""
    rules = Rules(rng.choice(POLICIES))
    if rng.random() < 0.2:
        name = rng.choice(list(KERNELS))
        return shown(kernels.get(name).program(KERNELS[name]), rng), rules
    return random_program(rng), rules


def shown(program: Program, rng: random.Random) -> Program:
    """The program, or in half of all cases the same with some temporaries as outputs."""
    if rng.random() < 0.5:
        return program
    written = {leaf.op.target.array for leaf in program.leaves}
    seen = [b for b in program.buffers if on_heap(b) and b.dtype in NUMBER_DTYPES]
    free = [b.arrays[0] for b in seen if written.issuperset(b.arrays)]
    more = tuple(a for a in free if a not in program.interface and rng.random() < 0.5)
    several = parse(replace(program, outputs=program.outputs + more).text)
    outcome = oracle.run(several)
    return several if outcome.fault is None and outcome.defined else program


def start_at_temporaries(rng: random.Random) -> tuple[Program, Rules]:
    """What the moves look for that take a temporary away, or nearly."""
    return random_temporaries(rng), Rules(rng.choice(POLICIES))


def start_on_a_gpu(rng: random.Random) -> tuple[Program, Rules]:
    """The same with some scopes given to a GPU of tiny warps already."""
    while True:
        program, rules = start(rng)
        if not program.tables:  # which GPU targets have not
            return mapped(program, rng, rules.policy), Rules(rules.policy, TINY)


def start_on_a_snitch(rng: random.Random) -> tuple[Program, Rules]:
    """A random program of what a tiny Snitch core can run."""
    return snitch.runnable(rng), Rules(rng.choice(POLICIES), snitch.TINY)


def is_small(program: Program, factor: float = 1) -> bool:
    instances = sum(math.prod(s.size for s in leaf.scopes) for leaf in program.leaves)
    cells = sum(math.prod(d.size for d in b.dims) for b in program.buffers)
    return instances <= factor * FEW[0] and cells <= factor * FEW[1]


def bearable(here: Context, move: Move, factor: float = 1) -> bool:
    """Is what comes of a move no work of minutes for the oracle? What no list offers may make any size."""
    try:
        result = outcome(here, move)
    except Exception:  # to be told by ``judge``
        return True
    return isinstance(result, Refusal) or is_small(result, factor)


def start_at_an_example(rng: random.Random) -> tuple[Program, Rules]:
    """The example of a move, with that move played: so the rare ones are met, and what comes after them."""
    while True:
        drawn = example(rng.choice(list(REGISTRY)))
        if is_small(drawn.program):
            rules = Rules(drawn.policy, drawn.target)
            return apply(drawn.program, drawn.move, rules.target, rules.policy), rules


def start_at_a_chain(rng: random.Random) -> tuple[Program, Rules]:
    return random_chain(rng), Rules("algebraic")


def start_with_long_rows(rng: random.Random) -> tuple[Program, Rules]:
    """A kernel whose sums have ten thousands of terms: what cancels there shows in no short one."""
    name = rng.choice(list(LONG_ROWS))
    return kernels.get(name).program(LONG_ROWS[name]), Rules(rng.choice(POLICIES))


def walk_from(
    program: Program,
    rules: Rules,
    rng: random.Random,
    tally: Tally,
    length: int,
    others: int | None,
    caution: bool = False,
    until: float = math.inf,
    compared: int = 1,
) -> tuple[Program, Finding | None]:
    """Play ``length`` random legal moves, or fewer where ``time.monotonic()`` passes ``until``. Other legal
    moves of each position are judged too: some of each transformation, or ``others`` in all. At each
    ``compared``-th position the listing, which leaves most moves unmade, must say of every candidate what
    comes of making it: this takes longer than all else. Returns the last position and the first finding."""
    terms = oracle.Terms()
    reference = list(oracle.run(program, rules.policy, terms).outputs.values())
    seen: set[str] = set()
    tally.walks += 1
    wild = off_the_grid(program, rules.target, rng)
    for number in range(length):
        by_name: dict[str, list[Move]] = {}
        here = context(program, rules.target, rules.policy)
        try:
            candidates = list(all_candidates(here))
            listing = number % (6 * compared) == 0  # which makes each move once itself
            spared = number % compared != 0 or (listing and not caution)
            outcomes = [] if spared else [(m, outcome(here, m)) for m in candidates]
            legal = [move for move in candidates if is_legal(here, move)]
        except Exception as error:
            return program, Finding("crash", rules, program.text, "", _told(error))
        for move in legal:
            by_name.setdefault(move.name, []).append(move)
        listed_legal = set(map(str, legal))
        for move, result in outcomes:
            if (str(move) in listed_legal) == isinstance(result, Refusal):
                told = f"listed as {'not ' * isinstance(result, Program)}legal"
                return program, Finding("listing", rules, program.text, str(move), told)
        if caution:
            refused = [(m, r) for m, r in outcomes if isinstance(r, Refusal)]
            count_caution(program, refused, rules, rng, tally, terms, reference)
        listed = [m for moves in by_name.values() for m in moves]
        if others is None:  # of each transformation a few, so that those with many moves leave time
            tried = [m for moves in by_name.values() for m in rng.sample(moves, min(3, len(moves)))]
        else:
            tried = rng.sample(listed, min(others, len(listed)))
        wild = off_the_grid(program, rules.target, rng)
        few = islice(wild, 4 if others is not None else 12)
        tried += [move for move in few if bearable(here, move)]
        if listing:
            finding = listing_fault(program, rules)
            if finding is not None:
                return program, finding
        for move in tried:
            if time.monotonic() > until:
                return program, None
            key = f"{program.hash} {move}"
            if key not in seen:
                seen.add(key)
                finding = judge(program, move, rules, tally, terms)
                if finding is not None:
                    return program, finding
        if not by_name:
            break
        # What is seldom legal would be played seldom: every third move is of a kind played least so far.
        often = min(tally.played[name] for name in by_name) if number % 3 == 2 else None
        names = [name for name in by_name if often is None or tally.played[name] == often]
        move = rng.choice(by_name[rng.choice(names)])
        if number % 4 == 3:  # one that no list offers, where one of those tried is legal
            move = next((m for m in islice(wild, 40) if is_legal(here, m) and bearable(here, m, 0.1)), move)
        finding = judge(program, move, rules, tally, terms)
        if finding is not None:
            return program, finding
        program = apply(program, move, rules.target, rules.policy)
        tally.played[move.name] += 1
        outputs = list(oracle.run(program, rules.policy, terms).outputs.values())
        if move.name in ONE_PASS:
            reference = outputs
        if outputs != reference:
            return program, Finding("meaning", rules, program.text, str(move), "drifted from the start")
    return program, None


def stroll(program: Program, rules: Rules, rng: random.Random, length: int, tally: Tally) -> Program:
    """Play ``length`` random legal moves and judge none: for programs too long for the oracle."""
    for _ in range(length):
        by_name: dict[str, list[Move]] = {}
        for move in legal_moves(program, rules.target, rules.policy):
            by_name.setdefault(move.name, []).append(move)
        # A third each: what turns scalar code into vectors, what few positions have, whatever else.
        kinds = [n for n in ("vectorize", "unroll", *ONE_PASS) if n in by_name] if rng.random() < 0.35 else []
        chosen = rng.choice(kinds or list(by_name))
        program = apply(program, rng.choice(by_name[chosen]), rules.target, rules.policy)
        tally.played[chosen] += 1
    return program


# ---------------------------------------------------------------------------- over-conservatism


def count_caution(
    program: Program,
    refused: Sequence[tuple[Move, Refusal]],
    rules: Rules,
    rng: random.Random,
    tally: Tally,
    terms: oracle.Terms,
    reference: list[tuple[int, ...]],
) -> None:
    """Would the oracle have let moves through that were refused for reasons of meaning? A few of each
    transformation and reason are asked about."""
    here = context(program, rules.target, rules.policy)
    kinds: dict[tuple[str, str], list[Move]] = {}
    for move, refusal in refused:
        if not refusal.structural:
            kinds.setdefault((move.name, refusal.code), []).append(move)
    for (name, code), moves in kinds.items():
        for move in rng.sample(moves, min(ASKED, len(moves))):
            planned = forced(here, move)
            if planned is None:
                continue
            tally.refused[name] += 1
            if needless(planned, rules, terms, reference):
                tally.cautious[name] += 1
                tally.causes[name, code] += 1
                kept = tally.examples.setdefault((name, code), [])
                if len(kept) < 20:
                    kept.append((str(move), program.text))


def needless(planned: Program, rules: Rules, terms: oracle.Terms, reference: list[tuple[int, ...]]) -> bool:
    """Is what a refused move makes a program, and the same to the oracle?"""
    try:
        parse(planned.text)  # bounds, and reads before any write
        fault = mark_fault(planned, rules.target, rules.policy)
        if fault is not None and fault.code not in ("vector-flow",):
            return False
        seen = oracle.run(planned, rules.policy, terms)
    except TextError:
        return False
    return seen.fault is None and list(seen.outputs.values()) == reference


# ---------------------------------------------------------------------------- the smallest reproducer


def smallest(finding: Finding) -> Finding:
    """The same kind of finding on a program with all taken away that it does not need."""
    best = finding
    if not finding.move:
        return best
    shrinking = True
    while shrinking:
        shrinking = False
        for candidate in _simpler(parse(best.text)):
            again = _again(candidate, best)
            if again is not None:
                best, shrinking = again, True
                break
    return best


def _again(text: str, finding: Finding) -> Finding | None:
    try:
        program = parse(text)
        outcome = oracle.run(program, finding.rules.policy)
        if outcome.fault or not outcome.defined or storage_fault(program) or len(text) >= len(finding.text):
            return None
        found = judge(program, parse_move(finding.move), finding.rules)
    except Exception:
        return None
    return found if found is not None and found.kind == finding.kind else None


def _simpler(program: Program) -> Iterator[str]:
    def body(change: Callable[[Node], tuple[Node, ...]]) -> Iterator[str]:
        for node, path, _ in walk(program.body):
            for new in change(node):
                changed = splice(program.body, path, 1, (new,) if new is not _GONE else ())
                if changed and not _hollow(changed):
                    yield program.edit(body=changed).text

    yield from body(lambda node: (_GONE,))
    yield from body(_shorter)
    for buffer in program.buffers:
        rest = [b for b in program.buffers if b is not buffer]
        whole = tuple(replace(d, materialised=True) for d in buffer.dims)
        for new in (replace(buffer, dims=whole), replace(buffer, location="heap")):
            if new != buffer:
                yield program.edit(buffers=(*rest, new)).text
        if len(buffer.arrays) > 1:
            pieces = [replace(buffer, name=a, arrays=(a,)) for a in buffer.arrays]
            yield program.edit(buffers=(*rest, *pieces)).text
    for array in program.outputs[1:]:
        outputs = tuple(a for a in program.outputs if a != array)
        yield replace(program, outputs=outputs).edit().text


_GONE = Op(None, "", "", ())  # type: ignore[arg-type]


def _hollow(body: tuple[Node, ...]) -> bool:
    return any(isinstance(n, Scope) and (not n.body or _hollow(n.body)) for n in body)


def _shorter(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Scope):
        fewer = tuple(replace(node, size=n) for n in (1, 2, node.size - 1) if 0 < n < node.size)
        return (*fewer, replace(node, mark="")) if node.mark else fewer
    simpler: list[Node] = []
    if node.guard:
        simpler.append(replace(node, guard=()))
    if node.prefetches:
        simpler.append(replace(node, prefetches=()))
    if node.function:
        simpler += [replace(node, function="", operands=(o,)) for o in node.operands]
    return tuple(simpler)
