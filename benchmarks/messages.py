"""Estimate of the communication and computing time of Crowd-BT on many machines.

python benchmarks/messages.py           written to benchmarks/results/messages.md

A pass sends all parameters to every machine and sums back, both along a tree: three numbers per parameter for a
gradient (gradient, Fisher diagonal, diagonal of the curvature), one for a product. The data and computation of a
machine grow with its judgments; its messages grow only with items and annotators. `scaling.py` compares these sizes
with real messages.
"""

from __future__ import annotations

import json
from math import ceil, log
from pathlib import Path

from machine import made, record

_RESULTS = Path(__file__).parent / "results"
_KERNELS = _RESULTS / "kernels.json"
_MACHINES, _CORES, _BRANCHES = 100, 16, 8
_BANDWIDTH = 1.25e9  # bytes a second: ten gigabits
_STORED, _CURVATURE = 13, 12  # bytes a judgment: codes; what a pass leaves beside them
_GRADIENTS, _PRODUCTS = 8, 40  # of the fits that were measured
_SIZES = ((10**8, 10**4, 10**4), (10**9, 10**5, 10**5), (10**10, 10**6, 10**6), (10**11, 10**6, 10**7))


def nanoseconds(kernel: str) -> float:
    """Of one judgment on one core, as measured at the largest size."""
    entries = json.loads(_KERNELS.read_text())["entries"]
    found = [e for e in entries if e["kernel"] == kernel and e["threads"] == 1]
    return float(max(found, key=lambda e: e["judgments"])["processor_nanoseconds"])


def parameters_of(items: int, annotators: int) -> int:
    """Bytes of all parameters, which are sent with a pass, and of the sums of a product."""
    return 8 * (items + annotators)


def sums_of(items: int, annotators: int) -> int:
    """Bytes of the sums of a gradient."""
    return 3 * parameters_of(items, annotators)


def row(judgments: int, items: int, annotators: int) -> str:
    parameters, sums = parameters_of(items, annotators), sums_of(items, annotators)
    levels = ceil(log(_MACHINES, _BRANCHES))
    share = judgments / _MACHINES
    gradient = share * nanoseconds("crowd-bt, gradient and curvature") * 1e-9 / _CORES
    product = share * nanoseconds("crowd-bt, curvature times a vector") * 1e-9 / _CORES
    # down the tree a machine sends to so many in turn, and up it hears from as many
    hop = levels * _BRANCHES / _BANDWIDTH
    fit = _GRADIENTS * (gradient + hop * (parameters + sums)) + _PRODUCTS * (product + hop * 2 * parameters)
    held = share * (_STORED + 2 * _CURVATURE) / 1e9
    cells = (
        f"10^{round(log(judgments, 10))}",
        f"{items:,}",
        f"{annotators:,}",
        f"{parameters / 1e6:,.1f} MB",
        f"{sums / 1e6:,.1f} MB",
        f"{held:,.2f} GB",
        f"{gradient:.3f} s",
        f"{hop * (parameters + sums):.3f} s",
        f"{fit / 60:,.1f} min",
    )
    return f"| {' | '.join(cells)} |"


def page() -> str:
    lines = [
        "| judgments | items | annotators | sent with a pass | sums of a gradient | held by a machine | "
        "a gradient computes | and is sent | a fit |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(row(*size) for size in _SIZES),
        "",
        f"{_MACHINES} machines of {_CORES} cores, ten gigabits per second, a tree of {_BRANCHES} branches; a fit of "
        f"{_GRADIENTS} gradients and {_PRODUCTS} products, kernels as measured here, with all parameters in the cache.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    text = f"{page()}\n{made()}\n"
    print(text)
    (_RESULTS / "messages.md").write_text(text, encoding="utf-8")
    record(Path(__file__), _RESULTS, "messages")


if __name__ == "__main__":
    main()
