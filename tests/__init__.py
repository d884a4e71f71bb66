"""The tests. They start the product in hundreds of processes: none is to compile its sources again."""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
