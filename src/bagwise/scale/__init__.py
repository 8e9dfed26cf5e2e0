"""More rows than memory, more work than one machine.

Owns the sources that hand a learner its bags part by part: files read in constant memory, and the workers of a Dask
cluster. Refuses a second formula for anything: what a learner asks is a sum over bags (`BagSource.reduce`), and its
result here equals the one in memory to rounding, however the rows are cut.

Vocabulary: a *piece* is what is read at one go by one thread or worker (some row groups of a file, a partition of a
data frame); a *run* is a stretch of rows with one bag id; a *span* is what a task makes of neighbouring pieces, with
the runs at its two ends kept open, as the neighbours may go on with them.
"""
