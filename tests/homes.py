"""A home of a test's own, with what the Dojo compiled before: most of what tests compile stays the same."""

from pathlib import Path

from dojo_core.measure import sealed
from dojo_core.measure.places import cache_directory

OBJECTS = sealed.folder(cache_directory() / "objects")  # before any test names another home


def with_objects(home: Path) -> Path:
    """The folder, made where it is not there; what is compiled under this home is kept, by content, for all
    tests and later runs. Not for tests of what is compiled, or damaged, there."""
    (home / "cache").mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "cache" / "objects").symlink_to(OBJECTS)
    return home
