"""The parts of the page, one a file: each takes the findings and gives a section, or None if it has nothing to tell."""
