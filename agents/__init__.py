"""Players that are programs. Each plays a game through the moves that a person has, and yields what it plays."""
