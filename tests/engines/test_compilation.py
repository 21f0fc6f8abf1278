import threading

import numpy as np

from crowdrank.engines.compilation import compiled


def double(x):
    return 2 * x


def test_a_loop_runs_plain_and_compiled_alike():
    @compiled(double)
    def total(values):
        """Adds up."""
        found = 0.0
        for value in values:
            found += double(value)
        return found

    values = np.arange(5.0)
    assert total.function(values) == 20.0
    assert total(values) == 20.0
    assert total.__doc__ == "Adds up."


def test_nothing_is_compiled_before_it_is_called_and_then_only_once(monkeypatch):
    times = []

    @compiled()
    def one():
        return 1

    def compile_once():
        times.append(1)
        return one.function

    monkeypatch.setattr(one, "_compile", compile_once)
    assert times == []
    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert times == [1]
