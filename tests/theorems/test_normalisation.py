"""Lemma E.13: an LTF over a Gaussian is a threshold on one standard normal coordinate.

It prints pos(e1.Z + l) with l = (r.mu + c) / |Sigma^(1/2) r|, the opposite of Theorem 3's l; the proof of Lemma 3.1
then passes -l on. All functions here use Theorem 3's: pos(u.Z - l).
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from bagwise.theory.gaussian import normalise
from gaussian_problems import problems


@given(problems(), st.integers(0, 2**32 - 1))
def test_lemma_e13_with_the_sign_of_theorem_3(problem, seed):
    cov, mean, ltf = problem.cov, problem.mean, problem.ltf
    root = np.linalg.cholesky(cov)
    u = root.T @ ltf.normal
    u /= np.linalg.norm(u)
    z = np.random.default_rng(seed).standard_normal((200, len(mean)))
    l = normalise(ltf, mean, cov).threshold
    margin = z @ u - l
    clear = np.abs(margin) > 1e-9
    assert (ltf.predict(z @ root.T + mean)[clear] == (margin > 0)[clear]).all()


@given(problems())
def test_the_share_of_positives_is_the_upper_tail(problem):
    normal, mean, cov = problem.ltf.normal, problem.mean, problem.cov
    share = ndtr((normal @ mean + problem.ltf.offset) / np.sqrt(normal @ cov @ normal))
    assert abs(share - ndtr(-problem.threshold)) < 1e-9
