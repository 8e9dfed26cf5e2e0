"""The theorems as functions.

Owns the closed forms of the Gaussian bag oracle: ``population`` returns exactly what ``stats`` would
estimate from infinitely many bags, as the same ``Moments`` type, so learners run on theory unchanged;
``bounds`` holds the sample sizes and guarantees, misprints corrected and noted. Refuses data: nothing here
takes a bag or a random generator. Vocabulary: *population* is the limit of many bags; the kappas are
defined where they are used.
"""
