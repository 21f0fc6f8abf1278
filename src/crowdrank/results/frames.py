"""Tables of results as data frames of the kind that the caller works with."""

from __future__ import annotations

from typing import Any

import polars as pl

from crowdrank.errors import SettingError


def as_native(frame: pl.DataFrame, native: str) -> Any:
    """Convert a polars frame to the library `native` ("polars", "pandas", "pyarrow", …)."""
    if native == "polars":
        return frame
    import narwhals

    try:
        return narwhals.from_dict(frame.to_dict(as_series=False), backend=native).to_native()  # type: ignore[arg-type]
    except ImportError as error:
        raise SettingError(f"{native} is not installed: pip install {native}, or use to_polars().") from error


class Tabular:
    """A result that is a table: `frame`, `to_polars` and `to_pandas`."""

    native: str

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars data frame."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the table as a pandas data frame."""
        return as_native(self.to_polars(), "pandas")

    def frame(self) -> Any:
        """Return the table as the kind of data frame that the judgments came in (polars for files)."""
        return as_native(self.to_polars(), self.native)
