"""Noise that is a function of its place: normal, uniform, and the same in every process."""

import math

import numpy as np
from scipy import stats

from cdmae.masking import noise

KEY = noise.key(42, "decoder", 0)


def test_noise_is_normal_also_in_the_tails():
    found = noise.normals(KEY, np.arange(1000), 1000, salt=1).ravel().astype(float)
    assert stats.kstest(found[:200_000], "norm").pvalue > 1e-4
    for edge in (1.0, 2.0, 3.0, 3.7, 4.2):
        expected = 2 * stats.norm.sf(edge) * len(found)
        assert abs((np.abs(found) > edge).sum() - expected) < 4 * math.sqrt(expected)
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 4 / math.sqrt(len(found))
    assert abs(np.corrcoef(found[:-1000], found[1000:])[0, 1]) < 4 / math.sqrt(len(found))


def test_noise_is_uniform_differs_by_salt_and_has_the_key_of_every_process():
    one, other = (noise.uniforms(KEY, np.arange(300), 300, salt=salt).ravel() for salt in (1, 2))
    assert stats.kstest(one, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / math.sqrt(len(one))
    assert int(noise.key(42, "decoder", 3)) == 8724798766497077298
