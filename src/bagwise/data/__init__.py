"""Where bags come from.

Owns the oracles, which draw bags exactly from a known law, and the files: Parquet, CSV and Arrow in, the
same out, written whole or not at all. Refuses to learn anything and to guess: a column that is missing,
repeated or not a number is an error that names it. Vocabulary: an *oracle* is Ex(f, N(mean, cov), q, k); a
*source* is a file, a folder or a glob of files with the same columns.
"""
