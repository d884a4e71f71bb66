"""Every page and state as pictures, and what a machine can tell of their look: see ``__main__``."""
