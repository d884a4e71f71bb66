"""Doors for programs: the calls of the game (dojo_core/calls) by the Model Context Protocol and by HTTP."""
