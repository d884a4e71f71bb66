"""Players at work on graphs: which program runs in the place of each kernel."""
