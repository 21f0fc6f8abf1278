"""Public sets of judgments, read from your own copies: nothing is downloaded, and no data come with the package."""

from crowdrank.datasets.catalogue import CATALOGUE, DatasetInfo
from crowdrank.datasets.loading import Dataset, available, load

__all__ = ["CATALOGUE", "Dataset", "DatasetInfo", "available", "load"]
