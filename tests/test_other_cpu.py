"""`tools/other_cpu.py` really changes the arithmetic; otherwise the second test run would only repeat the first."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crowdrank.engines.local import available_cores

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "other_cpu.py"
X86 = platform.machine() in ("x86_64", "AMD64")


def numpy_features() -> list[str]:
    """CPU features beyond the baseline that NumPy uses."""
    return np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])


def blas() -> list[dict]:
    import scipy.linalg  # noqa: F401  (which has a BLAS of its own)
    from threadpoolctl import threadpool_info

    return [library for library in threadpool_info() if library["user_api"] == "blas"]


def last_bits() -> str:
    """Results of the BLAS and of the C library that differ with and without fused multiply-add."""
    values = np.linspace(-3, 3, 900)
    matrix = values.reshape(30, 30)
    exponentials = np.array([math.exp(value) for value in values])
    return f"{(matrix @ matrix).tobytes().hex()}\n{exponentials.tobytes().hex()}"


@pytest.mark.arithmetic
@pytest.mark.skipif("CROWDRANK_OTHER_CPU" not in os.environ, reason="this is the first run")
def test_this_is_the_other_processor():
    from numba.core.registry import cpu_target

    assert numpy_features() == []
    assert cpu_target.target_context.codegen().magic_tuple()[1] == "generic"
    assert blas()
    for library in blas():
        assert library["num_threads"] == 1
        if library["internal_api"] == "openblas" and X86:
            assert library["architecture"] == "Nehalem"
    if hasattr(os, "sched_getaffinity"):
        assert available_cores() == 1


@pytest.mark.skipif(not (X86 and numpy_features()), reason="this processor has nothing to do without")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries do not ask the processor")
def test_the_other_processor_rounds_differently():
    code = "from tests.test_other_cpu import last_bits; print(last_bits())"
    command = [sys.executable, "-W", "error", TOOL, sys.executable, "-W", "error", "-c", code]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    said = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert said.stderr == ""
    there, here = said.stdout.split(), last_bits().split()
    assert [a != b for a, b in zip(there, here, strict=True)] == [True, True]
