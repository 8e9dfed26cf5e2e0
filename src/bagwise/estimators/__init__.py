"""The learners behind scikit-learn's door.

Owns the classes with ``fit`` and ``predict``: they validate input once, call the functions of ``learn``,
and store what came out under names ending in an underscore. Refuses formulas, which live in ``learn``,
``stats`` and ``theory``, and private scikit-learn API. Vocabulary: a *bag target* is the structured ``y``
that carries bag, size and count per row, so that pipelines and searches slice it with the rows.
"""
