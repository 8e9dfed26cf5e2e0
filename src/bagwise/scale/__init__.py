"""More rows than memory, more work than one machine.

Owns the map-reduce forms of the same sums: chunks of a file, or Dask partitions, become moments that merge
with ``+``. Refuses a second formula for anything: a result here equals the in-memory one to rounding.
Vocabulary: a *chunk* holds whole rows, not whole bags; a *carry* is the part of a bag that a later chunk
finishes.
"""
