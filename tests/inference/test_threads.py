"""BLAS uses one thread for small matrices, and as many as before when the last user has finished."""

from threading import Barrier, Thread

from threadpoolctl import threadpool_info

from crowdrank.engines.local import limit_blas_threads


def blas_threads():
    return {
        library["filepath"]: library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_small_matrices_are_worked_on_by_one_thread():
    before = blas_threads()
    with limit_blas_threads(100):
        assert set(blas_threads().values()) == {1}
    assert blas_threads() == before


def test_large_matrices_are_left_alone():
    before = blas_threads()
    with limit_blas_threads(5_000):
        assert blas_threads() == before


def test_whoever_leaves_last_lifts_the_limit():
    before, entered, left = blas_threads(), Barrier(2, timeout=10), Barrier(2, timeout=10)

    def other():
        with limit_blas_threads(10):
            entered.wait()
        left.wait()

    thread = Thread(target=other)
    with limit_blas_threads(10):
        thread.start()
        entered.wait()
        left.wait()
        thread.join()
        assert set(blas_threads().values()) == {1}
    assert blas_threads() == before
