"""Tuning on as many machines as there are, over dask.distributed (docs/scale.md).

    wire.py         what travels: plain JSON
    worker.py       in a dask worker's process: measures what is asked, and tells which machine it is
    pool.py         the other end: sends work, waits for machines, survives the loss of any of them
    credentials.py  the key file without which nobody takes part
    clusters.py     schedulers and workers: served here, started here, or by Slurm
    commands.py     ``dojo scheduler``, ``dojo worker``

Agents run where ``dojo tune`` does; only measurements travel.
"""
