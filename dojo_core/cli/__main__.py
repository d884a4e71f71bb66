"""``python -m dojo_core.cli`` is ``dojo``."""

from dojo_core.cli import main

main()
