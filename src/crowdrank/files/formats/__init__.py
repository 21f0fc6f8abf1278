"""The formats people hold. Each is a short file with one `Format`, listed here; tidy comes last and takes anything."""

from difflib import get_close_matches

from crowdrank.errors import SettingError
from crowdrank.files.formats.all_our_ideas import ALL_OUR_IDEAS, ALL_OUR_IDEAS_NON_VOTES
from crowdrank.files.formats.alpaca_eval import ALPACA_EVAL
from crowdrank.files.formats.appen import APPEN
from crowdrank.files.formats.argilla import ARGILLA
from crowdrank.files.formats.asap import ASAP
from crowdrank.files.formats.canonical import CANONICAL
from crowdrank.files.formats.comparative_judgement import COMPARATIVE_JUDGEMENT
from crowdrank.files.formats.crowd_kit import CROWD_KIT
from crowdrank.files.formats.evalica import EVALICA
from crowdrank.files.formats.fastchat import FASTCHAT
from crowdrank.files.formats.format import Format, Writer
from crowdrank.files.formats.gavel import GAVEL
from crowdrank.files.formats.jury import JURY
from crowdrank.files.formats.label_studio import LABEL_STUDIO
from crowdrank.files.formats.label_studio_min import LABEL_STUDIO_MIN
from crowdrank.files.formats.letor_ratings import LETOR
from crowdrank.files.formats.lmsys import LMSYS, LMSYS_55K
from crowdrank.files.formats.mt_bench import MT_BENCH
from crowdrank.files.formats.mturk import MTURK
from crowdrank.files.formats.no_more_marking import NO_MORE_MARKING
from crowdrank.files.formats.others import refuse_others
from crowdrank.files.formats.potato import POTATO
from crowdrank.files.formats.preflib import PREFLIB
from crowdrank.files.formats.prodigy import PRODIGY
from crowdrank.files.formats.pwcmp import PWCMP
from crowdrank.files.formats.tidy import TIDY
from crowdrank.files.formats.toloka import TOLOKA
from crowdrank.files.formats.trec import TREC_QRELS, TREC_RUN
from crowdrank.files.sources import Source

# Those known by their first lines come before those known by their columns, which not every text has.
FORMATS: tuple[Format, ...] = (
    PREFLIB, LETOR, TREC_QRELS, TREC_RUN, ASAP,
    LABEL_STUDIO, LABEL_STUDIO_MIN, ARGILLA, POTATO, PRODIGY, FASTCHAT, LMSYS, LMSYS_55K, MT_BENCH, ALPACA_EVAL,
    MTURK, TOLOKA, APPEN, ALL_OUR_IDEAS, ALL_OUR_IDEAS_NON_VOTES, GAVEL, JURY, NO_MORE_MARKING, COMPARATIVE_JUDGEMENT,
    PWCMP, CROWD_KIT, EVALICA, CANONICAL, TIDY,
)  # fmt: skip


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
