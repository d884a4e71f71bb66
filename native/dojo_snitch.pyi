from collections.abc import Sequence
from typing import TypedDict

from typing_extensions import Buffer

class Result(TypedDict):
    cycles: int
    instructions: int
    computed: int
    issued: int
    idle: int
    latency: int
    starved: int
    fault: str
    pc: int

def run(
    code: Sequence[int],
    base: int,
    memory: Sequence[tuple[str, int, Buffer, bool]],
    arguments: Sequence[int],
    limit: int,
) -> Result: ...
