"""Players that are programs. Each plays through the moves that a person has, and yields what it plays."""
