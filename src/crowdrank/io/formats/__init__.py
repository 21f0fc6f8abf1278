"""The formats people hold. Each is a short file with one `Format`, listed here; tidy comes last and takes anything."""

from difflib import get_close_matches

from crowdrank.errors import SettingError
from crowdrank.io.formats.alpaca_eval import ALPACA_EVAL
from crowdrank.io.formats.arenas import FASTCHAT, LMSYS, LMSYS_55K, MT_BENCH
from crowdrank.io.formats.argilla import ARGILLA
from crowdrank.io.formats.asap import ASAP
from crowdrank.io.formats.base import Format, Writer
from crowdrank.io.formats.comparative_judgement import COMPARATIVE_JUDGEMENT, NO_MORE_MARKING
from crowdrank.io.formats.crowd_kit import CROWD_KIT
from crowdrank.io.formats.crowd_platforms import APPEN, MTURK, TOLOKA
from crowdrank.io.formats.evalica import EVALICA
from crowdrank.io.formats.label_studio import LABEL_STUDIO, LABEL_STUDIO_MIN
from crowdrank.io.formats.letor import LETOR
from crowdrank.io.formats.potato import POTATO
from crowdrank.io.formats.preflib import PREFLIB
from crowdrank.io.formats.prodigy import PRODIGY
from crowdrank.io.formats.pwcmp import PWCMP
from crowdrank.io.formats.tidy import CANONICAL, TIDY, refuse_others
from crowdrank.io.formats.trec import TREC_QRELS, TREC_RUN
from crowdrank.io.formats.voting_apps import ALL_OUR_IDEAS, ALL_OUR_IDEAS_NON_VOTES, GAVEL, JURY
from crowdrank.io.sources import Source

# Those known by their first lines come before those known by their columns, which not every text has.
FORMATS: tuple[Format, ...] = (
    PREFLIB,
    LETOR,
    TREC_QRELS,
    TREC_RUN,
    ASAP,
    LABEL_STUDIO,
    LABEL_STUDIO_MIN,
    ARGILLA,
    POTATO,
    PRODIGY,
    FASTCHAT,
    LMSYS,
    LMSYS_55K,
    MT_BENCH,
    ALPACA_EVAL,
    MTURK,
    TOLOKA,
    APPEN,
    ALL_OUR_IDEAS,
    ALL_OUR_IDEAS_NON_VOTES,
    GAVEL,
    JURY,
    NO_MORE_MARKING,
    COMPARATIVE_JUDGEMENT,
    PWCMP,
    CROWD_KIT,
    EVALICA,
    CANONICAL,
    TIDY,
)


def recognise(source: Source) -> Format:
    """The first format that knows itself in the source's first lines, objects or columns."""
    found = next(known for known in FORMATS if known.recognises(source))
    if found is TIDY:
        refuse_others(source)
    return found


def by_name(name: str) -> Format:
    """A format by its name; an error lists them all."""
    found = next((known for known in FORMATS if known.name == name), None)
    if found is None:
        names = [known.name for known in FORMATS]
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}? There are" if near else "there are"
        raise SettingError(f"No format named {name!r}; {hint}: {', '.join(names)}.")
    return found


__all__ = ["FORMATS", "Format", "Writer", "by_name", "recognise"]
