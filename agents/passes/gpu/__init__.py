"""The passes for GPUs. Heuristic: what an expert does, by the program's structure and the target's limits.

It knows no kernel by name. Products get tiles in shared memory and registers; long rows get a warp or a block
each, which reads them once into registers; everything else gets a thread for each result. What may not be
mapped stays as it is. Source: PerfDojo, SC '25, section 4.1, and the recorded lines of dojo_core/lines/gpu.
"""

from __future__ import annotations

from collections.abc import Callable

from agents.passes.fusion import use_reciprocals
from agents.passes.gpu.bands import fuse_independent
from agents.passes.gpu.contractions import tile_products
from agents.passes.gpu.loads import stream_what_is_read_once
from agents.passes.gpu.results import map_results
from agents.passes.gpu.rows import map_rows
from agents.passes.gpu.sums import spread_sums
from agents.passes.gpu.threads import to_heap
from agents.passes.naive import naive
from agents.passes.recomputing import recompute_far
from agents.passes.structure import unmarked_at
from dojo_core.moves.storage import temporaries
from dojo_core.program.tree import Provenance
from dojo_core.recipes import Sketch


def greedy_on_a_gpu(sketch: Sketch) -> None:
    """Naive, then warps and blocks for long rows, threads for all results, vectors and registers."""
    naive(sketch)
    for buffer in list(temporaries(sketch.program)):  # iterations that share storage could not run at once
        with sketch.attempt():
            to_heap(sketch, buffer.name)
    _map(sketch, map_rows)
    _map(sketch, map_results)


def heuristic_on_a_gpu(sketch: Sketch) -> None:
    """Play the whole pass; moves that are refused are left out."""
    use_reciprocals(sketch)
    tile_products(sketch)
    spread_sums(sketch)
    fuse_independent(sketch)
    recompute_far(sketch)
    fuse_independent(sketch)
    _map(sketch, map_rows)
    _map(sketch, map_results)
    stream_what_is_read_once(sketch)


def _map(sketch: Sketch, mapped: Callable[[Sketch, Provenance], None]) -> None:
    """Map each nest at the root that is not mapped yet, where that is legal."""
    for number in range(len(sketch.program.body)):
        if unmarked_at(sketch.program, (number,)):
            with sketch.attempt():
                mapped(sketch, sketch.provenance((number,)))
