"""Threads: their results are in order, errors are passed on, and faiss gets its own number back."""

import faiss
import pytest

from cdmae.threads import Threads, faiss_threads


@pytest.mark.parametrize("number", [0, 1, 3])
def test_threads_return_results_in_order_and_pass_errors_on(number):
    with Threads(number) as threads:
        assert threads.run(pow, [2, 3, 4], [1, 2, 3]) == [2, 9, 64]
        assert threads.submit(pow, 2, 5).result() == 32
        with pytest.raises(ZeroDivisionError):
            threads.run(divmod, [1, 1], [1, 0])


def test_faiss_uses_a_number_of_threads_until_an_error():
    before = faiss.omp_get_max_threads()
    with pytest.raises(ZeroDivisionError), faiss_threads(before + 1):
        assert faiss.omp_get_max_threads() == before + 1
        divmod(1, 0)
    assert faiss.omp_get_max_threads() == before
