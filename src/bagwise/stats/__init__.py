"""Sums over rows, and what they turn into.

Owns the mergeable sufficient statistics of bags (``BagMoments``, merged with ``+``, finished into
``Moments``), the dense linear algebra on d x d matrices that learners share, and the exact law of a sum of
independent coin flips (Poisson-binomial). Refuses to draw random data, to read files and to know what a
learner is: a function here takes arrays or ``Bags`` and returns numbers. Vocabulary: *moments* are sums
over rows and bags divided by their counts; a *kernel* is a compiled loop without validation.
"""
