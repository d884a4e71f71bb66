"""An abacus: a target for the Dojo with a move, a pass, an agent and a kernel of its own."""

DOJO_API = 1
