"""The one exception that pages are told of as a sentence."""


class Refused(Exception):
    """Something that a person asked for cannot be done; the message is a sentence for them."""
