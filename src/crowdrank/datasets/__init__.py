"""Public sets of judgments, read from your own copies: nothing is downloaded, and no data come with the package."""

from crowdrank.datasets.catalogue import CATALOGUE, Dataset, DatasetInfo, available, load

__all__ = ["CATALOGUE", "Dataset", "DatasetInfo", "available", "load"]
