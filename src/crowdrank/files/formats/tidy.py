"""One row a judgment, a header, columns called by their role or a synonym of it."""

from crowdrank.files.formats.format import Format

TIDY = Format(
    name="tidy",
    description="One row a judgment; columns such as annotator, left, right, winner, or synonyms of these.",
    recognises=lambda columns, sample: True,
    read=lambda table: table,
)
