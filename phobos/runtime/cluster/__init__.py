"""Kernels on more than one GPU and more than one machine, on `dask.distributed`; nothing here is an engine of our own.

`connect` finds or starts the workers, `pieces` says how an extent is cut, `shards` runs a kernel on the pieces,
`executor` tries the variants of a kernel that is being tuned. Only these import dask.
"""
