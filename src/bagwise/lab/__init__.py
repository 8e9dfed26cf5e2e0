"""The published experiments, as data.

Owns the tables to reproduce (specifications, published numbers), the runner that fills in what is missing
and resumes what was interrupted, and the report made from the rows. Refuses learning code: an experiment
calls the public names that a user calls. Vocabulary: a *cell* is one place of a table, its seed is spawned
from its own name; a *row* is one measured result with its specification, versions and seconds.
"""
