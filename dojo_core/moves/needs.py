"""What would have to be different where no move makes a refused one legal: its result would mean something
else, or have a form that programs cannot have."""

from __future__ import annotations

from dojo_core.moves.core import REGISTRY, Context, Move, Refusal
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.codes import Code

# By what a refusal is about; of a move where it matters which.
_BY_MOVE: dict[tuple[str, str], str] = {
    ("merge_scopes", Code.NOT_FLAT): (
        "One scope has one iterator, from which neither of the two can be had back: whatever uses one "
        "without the other would have to stand outside."
    ),
    ("share_buffer", Code.CLOBBER): (
        "Both hold values that are still read: one would have to be read for the last time before the other "
        "is first written."
    ),
    ("split_scope", Code.SPLIT_FACTOR): "It has too few iterations to be cut into runs of more than one.",
    ("reorder", Code.ORDER): (
        "One of the two needs what the other does to that cell, so that this order is what the program "
        "means. Either could go first only if they had no cell in common."
    ),
    ("join_scopes", Code.ORDER): (
        "The second needs values that later iterations of the first make, so that one must end before the "
        "other begins. Joined they could be only if an iteration needed nothing from later ones."
    ),
}
_BY_CODE: dict[str, str] = {
    Code.NO_NEXT: "It is the last of its block, as is each scope around it.",
    Code.NO_PARTNER: "It is the last of its block, and what follows the scopes around it is none like it.",
    Code.ORDER: "This order is what the program means, as long as both access that cell.",
    Code.SEEN: (
        "Without it the result would be another one. It is dead only once nothing reads it: its readers "
        "would have to take the value from elsewhere (forward, recompute)."
    ),
    Code.STALE: (
        "A copy holds what was there before: all that is read in it would have to be written before the "
        "scope begins."
    ),
    Code.CHANGED_BETWEEN: (
        "Computed there it would see the new value: that would have to be written later, or to another array."
    ),
    Code.CHANGED_SINCE: ("Only what was made so, and has been left so, is taken back by this move."),
    Code.NOT_ONE_DEFINITION: (
        "Several writes make the value that is read, none of them all of it: one would have to."
    ),
    Code.OTHER_FORM: "Only sums of that form have this other one.",
    Code.PAD_OUTPUT: "The caller would see what the added iterations write: they need a guard.",
    Code.INSTRUCTION_OPERATION: (
        "The instruction computes something else: the operation would have to be the instruction's own."
    ),
    Code.INSTRUCTION_DTYPE: "The arrays would have to have the instruction's dtypes: no move changes those.",
    Code.INTERFACE: "What the caller hands over stays as it is: a copy of it can be laid out (stage_read).",
    Code.VECTOR_FLOW: (
        "Lanes run at once: an iteration that needs what the one before it made cannot be a lane."
    ),
    Code.VECTOR_REGROUP: "Another policy would allow it.",
    Code.POLICY: "Another policy would allow it.",
    Code.NOT_REPEATABLE: (
        "Done twice it would use what the first time left: it would have to set first what it reads."
    ),
    Code.HULL_BOUNDS: (
        "Iterations that a guard leaves out reach beyond it: without the padding, or in a scope that reads "
        "no more than there is, it could be copied."
    ),
    Code.NOT_DENSE: (
        "One write would have to fill the box that is stored, without gaps: no guard, and no last iterations "
        "cut off to a scope of their own."
    ),
    Code.NOT_A_COPY: (
        "Only what is copied is read where it came from: what is computed would have to be computed again "
        "(recompute)."
    ),
    Code.UNROLLED_SIZE: "Its body is too long: a scope in it can be unrolled, or some of its iterations.",
    Code.NOT_THE_SAME: "Both would have to compute the same.",
    Code.UNWRITTEN: "What is read would have to be written before.",
    Code.UNDEFINED: "What is read would have to be written before.",
}


def needs(context: Context, move: Move, refusal: Refusal) -> str:
    """A sentence, where it is known that a refusal is one of principle; else empty."""
    known = _BY_MOVE.get((move.name, refusal.code)) or _BY_CODE.get(refusal.code, "")
    transformation = REGISTRY.get(move.name)
    if known or transformation is None:
        return known
    try:
        return transformation.needs(context, move.arguments, refusal)
    except NoSuchPlace:
        return ""
