"""The paper's formulas as functions, with the misprints put right.

    conditions      what the theorems ask of their arguments
    gaussian        the normalisation to l; moments of a thresholded Gaussian
    kappas          kappa1, kappa2, kappa3, theta, gamma, rho, for one count and for mixtures
    population      exact moments of the bag oracle, as the `Moments` that learners take
    sample_sizes    bags that suffice, lemma by lemma and theorem by theorem
    generalisation  from sampled bags to all bags to instances
    asymptotics     what the learners' errors are, not only bounds on them

Numbers of lemmas and theorems are those of the paper's source as it compiles; docs/paper-notes.md lists them
with what is printed wrong and what holds.
"""
