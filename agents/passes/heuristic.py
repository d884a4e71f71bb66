"""The heuristic pass for CPUs: what an expert does, by the structure of the program and the target's limits.

It knows no kernel by name. Products and stencils get register tiles first; all other nests are fused row by
row; then come vectors, storage, threads and the flow of data. Source: PerfDojo, SC '25, section 4.1, and the
recorded lines.
"""

from __future__ import annotations

from agents.passes.bilinear import use_fewer_products
from agents.passes.channels import channels_in_lanes
from agents.passes.contractions import tile_contractions
from agents.passes.dense import dense_rows
from agents.passes.epilogues import attach_epilogues, attach_prologues
from agents.passes.fusion import align_orders, fuse_all, use_reciprocals
from agents.passes.gathering import gather_windows
from agents.passes.inner_products import sum_in_lanes
from agents.passes.matrix_of_rows import copy_rows_in_order
from agents.passes.matrix_rows import rows_side_by_side
from agents.passes.matvec import run_along_rows
from agents.passes.moments import sum_squares_by_blocks
from agents.passes.next_product import ask_for_next_product
from agents.passes.operand_blocks import block_operands
from agents.passes.phases import separate_phases
from agents.passes.pipelines import pipeline_rows
from agents.passes.pooled_rows import compute_pooled_rows
from agents.passes.pools import add_rows_of_windows
from agents.passes.recomputing import recompute_far, recompute_near
from agents.passes.repeated import order_what_repeats
from agents.passes.row_blocks import block_rows
from agents.passes.scalars import sum_in_registers
from agents.passes.scans import recur_side_by_side
from agents.passes.scattering import scatter_in_tiles
from agents.passes.storage import place_temporaries
from agents.passes.streams import (
    ask_ahead,
    ask_beside_functions,
    ask_for_operands,
    ask_for_rows,
    stream_results,
)
from agents.passes.sums_in_parts import sum_in_parts
from agents.passes.threads import share_work, spread_sums
from agents.passes.vectors import vectorise_all
from dojo_core.recipes import Sketch

FOR_THREADS = 20  # moves that are held back for the last step, which pays most, where there may not be more


def heuristic(sketch: Sketch) -> None:
    """Play the whole pass; moves that are refused are left out, and those for which there is no room."""
    most, sketch.most = sketch.most, sketch.most - FOR_THREADS
    _by_structure(sketch)
    sketch.most = most
    share_work(sketch)


def _by_structure(sketch: Sketch) -> None:
    """All steps but the last."""
    use_reciprocals(sketch)
    sum_squares_by_blocks(sketch)
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.accumulate]:
        use_fewer_products(sketch, provenance)
        compute_pooled_rows(sketch, provenance)
        channels_in_lanes(sketch, provenance)
        dense_rows(sketch, provenance)
        separate_phases(sketch, provenance)
        gather_windows(sketch, provenance)
        scatter_in_tiles(sketch, provenance)
        copy_rows_in_order(sketch, provenance)
        run_along_rows(sketch, provenance)
        rows_side_by_side(sketch, provenance)
        sum_in_lanes(sketch, provenance)
        add_rows_of_windows(sketch, provenance)
    tile_contractions(sketch)
    attach_epilogues(sketch)
    attach_prologues(sketch)
    block_rows(sketch)
    block_operands(sketch)
    spread_sums(sketch)
    align_orders(sketch)
    fuse_all(sketch)
    if recompute_far(sketch):
        fuse_all(sketch)
    recompute_near(sketch)
    order_what_repeats(sketch)
    vectorise_all(sketch)
    place_temporaries(sketch)
    recur_side_by_side(sketch)
    sum_in_registers(sketch)
    ask_for_next_product(sketch)
    ask_for_operands(sketch)
    ask_for_rows(sketch)
    stream_results(sketch)
    pipeline_rows(sketch)
    ask_ahead(sketch)
    ask_beside_functions(sketch)
    sum_in_parts(sketch)
