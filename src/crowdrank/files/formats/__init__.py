"""The formats people hold. Each is a short file with one `Format`, listed here; tidy comes last and takes anything."""

from crowdrank.files.formats.format import Format
from crowdrank.files.formats.tidy import TIDY
from crowdrank.files.tables import Table

FORMATS: tuple[Format, ...] = (TIDY,)


def recognise(table: Table) -> Format:
    """The first format that knows itself in the table's columns and first rows."""
    *special, tidy = FORMATS
    if not special:
        return tidy
    sample = table.sample
    return next((found for found in special if found.recognises(table.columns, sample)), tidy)


__all__ = ["FORMATS", "Format", "recognise"]
