"""The heuristic pass for GPUs: what an expert does, by the structure of the program and the target's limits.

It knows no kernel by name. Products get tiles in shared memory and registers; long rows get a warp or a block
each, which reads them once into registers; everything else gets a thread for each result. What may not be
mapped stays as it is. Source: PerfDojo, SC '25, section 4.1, and the recorded lines of lines/cuda.
"""

from __future__ import annotations

from agents.passes.fusion import recompute_far, use_reciprocals
from agents.passes.gpu.bands import fuse_independent
from agents.passes.gpu.contractions import tile_products
from agents.passes.gpu.results import map_results
from agents.passes.gpu.rows import map_rows
from agents.passes.gpu.sums import spread_sums
from agents.passes.structure import unmarked_at
from dojo_core.recipes import Sketch


def heuristic_on_a_gpu(sketch: Sketch) -> None:
    """Play the whole pass; moves that are refused are left out."""
    use_reciprocals(sketch)
    tile_products(sketch)
    spread_sums(sketch)
    fuse_independent(sketch)
    recompute_far(sketch)
    fuse_independent(sketch)
    for number in range(len(sketch.program.body)):
        for mapped in (map_rows, map_results):
            if unmarked_at(sketch.program, (number,)):
                with sketch.attempt():
                    mapped(sketch, sketch.birth((number,)))
