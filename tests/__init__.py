"""The tests. They start the product in hundreds of processes: none is to compile its sources again, nor to
spin where it waits, since they run side by side."""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read as OpenMP is loaded: who waits sleeps
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's, likewise
