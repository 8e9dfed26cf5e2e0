"""What may be claimed about a model, from bags alone.

Owns the measures of a model on bags (bag error, proportion error), the exact instance error where the
distribution is known, and everything that reaches from held-out counts to instances: rates, certificates,
the planner. Refuses to fit a classifier and to draw data without being given a generator. Vocabulary: an
*estimate* comes with its interval; a *bound* comes with its assumptions in words.
"""
