"""From bags to a linear threshold.

Owns the learners as plain functions of two shapes, ``Moments -> normal`` and ``Bags, rng -> LTF``, in the
order a fit reads: a direction from moments, an offset from bags, a refinement by likelihood. Refuses
validation (done once at the door, by ``Bags`` and the estimators), scikit-learn and files. Vocabulary:
*normal* and *offset* are the two parts of an ``LTF``; *satisfied* is a bag whose number of predicted
positives is its count.
"""
