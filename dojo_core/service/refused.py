"""The one exception that pages are told of as a sentence, and its kinds, which programs tell apart."""


class Refused(Exception):
    """Something that a person asked for cannot be done; the message is a sentence for them."""


class Unfit(Refused):
    """A kernel at a shape, or a text, is nothing that can be played on, or not on that target."""


class Unsized(Refused):
    """A model leaves sizes of its inputs open; ``offered`` are shapes to begin with, as a person writes them:
    ``x=4x128 mask=4``."""

    def __init__(self, sentence: str, offered: str) -> None:
        super().__init__(sentence)
        self.offered = offered


class NotThere(Refused):
    """There is nothing of that name or number."""


class Full(Refused):
    """A player has as much as one may have."""
