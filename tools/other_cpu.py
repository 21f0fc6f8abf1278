"""Run a command with the arithmetic of another processor: `python tools/other_cpu.py python -m pytest -m arithmetic`.

Results on two machines differ in their last bits, because NumPy, the BLAS, the C library and Numba each choose their
instructions by processor. This script makes all four avoid those introduced after 2008 (vectors of more than two
numbers, fused multiply-add), and runs everything in one thread.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import numpy as np

CACHE = Path(__file__).resolve().parents[1] / ".numba-other-cpu"
OLDEST_BLAS = {"x86_64": "Nehalem", "AMD64": "Nehalem", "aarch64": "ARMV8", "arm64": "ARMV8"}


def numpy_features() -> list[str]:
    """CPU features beyond the baseline that NumPy found here; it would ignore or warn about other names."""
    found: list[str] = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return found


def variables() -> dict[str, str]:
    """The environment variables that make this processor behave like an older one."""
    disabled = os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split() + numpy_features()
    chosen = {
        "CROWDRANK_OTHER_CPU": "1",
        "NPY_DISABLE_CPU_FEATURES": " ".join(disabled),
        # glibc chooses its exp, log and pow by these features; it ignores names that it does not know.
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4,-FMA4_Usable",
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CACHE_DIR": str(CACHE),
    } | {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    if platform.machine() in OLDEST_BLAS:
        chosen["OPENBLAS_CORETYPE"] = OLDEST_BLAS[platform.machine()]
    return chosen


if __name__ == "__main__":
    os.execvpe(sys.argv[1], sys.argv[1:], os.environ | variables())
