"""The collection server: annotators compare items on a web page, and a board follows."""
