"""Every limit of building and measuring, in one place."""

from __future__ import annotations

MEBI = 2**20
GIBI = 2**30

# Compiling
COMPILE_SECONDS = 30.0  # one run of the compiler
COMPILE_MEMORY = 4 * GIBI
COMPILE_FILE_BYTES = 64 * MEBI  # what a compiler may write into one file
CODE_BYTES = MEBI  # one generated function
BATCH_KERNELS = 25  # kernels in one C file: 2 files of 25 compile in half the time of 50
FIRST_BATCH = 8  # the first results should come soon
CACHE_OBJECT_BYTES = 256 * MEBI  # shared objects kept on disk
MESSAGE_CHARACTERS = 4000  # of a compiler's message

# Running
RUN_SECONDS = 10.0  # one request to the worker: verification and all its samples (samples stop far earlier)
JUDGE_MULTIPLE = 6  # of this has a start program, which runs once
EMULATE_SECONDS = 120.0  # of one run of a GPU program in the emulator, on one core
PREPARE_SECONDS = 180.0  # inputs and references of a workload
RETRY_START_SECONDS = 120.0  # until a start program that could not be judged gets another chance
START_SECONDS = 60.0  # until a new worker answers, on a loaded machine
STACK_BYTES = 64 * MEBI  # of the thread that calls kernels; generated code keeps small arrays on its stack
OPENMP_STACK = "16M"  # of every other thread
WORKER_FILE_BYTES = 4 * GIBI
WORKER_MEMORY_SHARE = 0.8  # of the machine's memory
CRASHES = 2  # a program that crashed or hung this often is not run again
KNOWN_CODES = 1024  # outcomes that a measurer keeps in memory, some KB each; older ones are in the records

# Buffers
SETS_BYTES = GIBI  # memory for the rotating sets of buffers
SETS = 8  # of them at most
CACHE_MULTIPLE = 2.0  # rotating sets exceed the last-level cache by this factor


def sets_of_inputs(set_bytes: int, last_level: int, second_level: int) -> int:
    """Among how many sets of buffers runs rotate; sizes in bytes.

    What fits the second-level cache finds itself there in real use too; anything larger rotates among sets
    that exceed the last-level cache.
    """
    if set_bytes <= second_level:
        return 1
    return min(SETS, max(1, SETS_BYTES // set_bytes), 1 + int(CACHE_MULTIPLE * last_level / set_bytes))


# Pools (inputs and references) kept on disk
USUAL_SEED = 0  # of the inputs that are kept; those of other seeds are used once
POOL_BYTES = 512 * MEBI  # a larger one is computed again instead
POOL_CACHE_BYTES = 2 * GIBI

# Records
BUSY_SECONDS = 30.0  # waiting for another process that writes
