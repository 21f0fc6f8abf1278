"""The collection server: annotators compare items on a web page, and a live board shows the ranking."""
