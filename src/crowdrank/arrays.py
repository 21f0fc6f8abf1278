"""Array types used in annotations throughout the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
ObjectArray = npt.NDArray[np.object_]
AnyArray = npt.NDArray[Any]
