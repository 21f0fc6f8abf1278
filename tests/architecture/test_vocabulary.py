"""The code uses the field's terms: no retired term is left in names, docstrings, messages or pages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "crowdrank"
CHECKED = (SOURCE, *(ROOT / name for name in ("tests", "docs", "tools", "examples", "paper")))
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]

# The vocabulary: each retired word or name with the term that replaces it. Checked as part of a name, split at
# underscores and capitals, in functions, classes, arguments, settings, keys and modules.
RETIRED = {
    "climb climbs climbed": "maximise",
    "summit summits": "MAP or maximum-likelihood estimate, optimum; LaplaceApproximation",
    "bend bends": "Hessian diagonal, curvature",
    "heights": "log-likelihoods",
    "mirrored upright": "sign (orientation) resolution",
    "outright": "closed form",
    "walked": "sample",
    "stride": "step size",
    "glide glided gliding": "hmc_step",
    "stretching": "scale move",
    "gate gates": "quality logit",
    "pull pulls": "feature weight",
    "sway sways": "bias effect",
    "sight sights": "perceived utility",
    "blur": "perception noise",
    "hazard": "inverse Mills ratio",
    "conclude": "build_ranking",
    "foretell foretold foretelling": "predict, cross-validation, prequential",
    "knowing": "with_side_information",
    "warmed": "with_warm_start",
    "island islands": "disconnected component",
    "awaiting": "pending",
    "telling": "ThompsonAnnotator",
    "doubtful": "MaxEntropyPair",
    "wish": "target",
    "pushes": "influence",
    "tastes": "camps, minority preferences",
    "contender contenders": "candidates",
    "chances": "p_values, probabilities",
    "lesson": "TrainingSet",
    "teachers": "AnnotatorExpertise",
    "door": "Authenticator; of data: import",
    "knock": "authenticate",
    "outlook": "PendingState",
    "scout scouts": "candidate starts",
}
# Checked as whole names, because as parts of other names these words have an ordinary meaning.
RETIRED_NAMES = {
    "Found": "OptimizeResult",
    "pace": "momentum",
    "jump jumps": "random-walk step, proposal",
    "Health": "DataDiagnostics",
    "look_again look_through": "elliptical slice step, Gibbs step",
    "walk care turned": "run, attention, flipped",
    "need": "require_kind",
    "made_whole": "fill_missing",
    "starting_at": "fit(init=...)",
    "told": "apply_side_information",
    "InParts Recipe recipe recipes": "ChunkedTable, ChunkLoader",
    "Asked": "QuestionHistory",
    "Choices": "CandidateSet",
    "MostTelling MostDoubtful Anyone": "ThompsonAnnotator, MaxEntropyPair, UniformAnnotator",
    "Roll": "Vocabulary",
    "Refits": "SequentialMCMC",
    "truths lies": "alpha, beta",
    "unseen": "cross_validation",
    "leaving_out": "annotator_removal",
    "Learnt Drawing": "EMResult, EStep",
    "Desk desk": "AssignmentService",
    "Turn Live Thing Person Standing": "Request, Projection, Item, Annotator, DecisionStatus",
    "Kinds Habits Leanings Seats": "SufficientStatistics, RaterEffects, SignedPairs, AnnotatorIndex",
}
# Checked as names of modules.
RETIRED_MODULES = {
    "reading": "conversion, post-processing",
    "null random_share": "null_simulation, reliability",
    "sides shares places": "position_bias, intervals, ranks",
    "hints": "quality constraints",
    "stretch": "scale move",
}
# Retired in one meaning, and in use in another one, which is the field's.
ORDINARY = {
    "highest": "the highest value",
    "slope": "of a line: regression slope, probit slope",
    "Point": "a point of a figure",
    "Top": "a rule for stopping: the top k are decided",
    "met": "a criterion that is met",
    "worth": "what a vote of a language model is worth in human votes",
    "frame": "data frame",
    "separation note": "complete separation: an item that only won",
    "parts": "what a result consists of",
    "questions": "what annotators are asked",
}
# The column "instead of" of the vocabulary that was agreed on. The tables above say what became of each of its words.
AGREED = """
climb, summit, highest, in sight, short of its summit, slope, bend, heights, Found, Point, Summit, Top, turned,
mirrored, upright, which way is up, outright, walk, met, worth, stride, pace, frame, glide, look_again, look_through,
jump, stretch, gate, pull, pulls, sway, sways, care, sight, blur, hazard, hints, conclude, need, reading, foretell,
foretold, foretelling, the door, knowing, starting_at, told, made_whole, warmed, island, separation note, Health, parts,
Recipe, passed over, questions, Asked, Choices, awaiting, MostTelling, MostDoubtful, Anyone, foretold, random_share,
null, wish, truths, lies, Roll, Refits, pushes, tastes, unseen, contenders, sides, leaving_out, chances, shares, places,
Lesson, Teachers, Learnt, Drawing, Door, Desk, Turn, knock, Live, Thing, Person, Outlook, Standing
"""
# Words and phrases of docstrings, comments, messages and pages.
RETIRED_IN_PROSE = re.compile(
    r"\b(?:climb\w*|summits?|foretell\w*|foretold|outright|upright|sways?|swayed|glid(?:e|es|ing)|knock\w*|islands?"
    r"|so manieth|hangs? on|passed over|reckon\w*|the door|in sight|as far as that|which way is up|(?-i:: Found\b)"
    r"|short of its)(?!\w)",
    re.IGNORECASE,
)


def words(table: dict[str, str]) -> frozenset[str]:
    return frozenset(word for key in table for word in key.split())


PARTS, NAMES, MODULES = words(RETIRED), words(RETIRED_NAMES), words(RETIRED_NAMES | RETIRED_MODULES)


def files(pattern: str) -> list[Path]:
    return sorted(SOURCE.rglob(pattern))


def checked(*suffixes: str) -> list[Path]:
    """Files of the package, its tests, its documentation and its tools, without this one."""
    found = [*PAGES, *(path for folder in CHECKED for path in sorted(folder.rglob("*")))]
    return [path for path in found if path.suffix in suffixes and path != Path(__file__).resolve()]


def names_in(tree: ast.AST) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.append((node.lineno, node.name))
            case ast.arg():
                found.append((node.lineno, node.arg))
            case ast.Name(ctx=ast.Store()):
                found.append((node.lineno, node.id))
            case ast.Attribute(ctx=ast.Store()):
                found.append((node.lineno, node.attr))
            case ast.keyword(arg=str()):
                found.append((node.value.lineno, node.arg))
            case ast.Dict():  # keys of JSON, columns of tables
                found += [(key.lineno, key.value) for key in node.keys if is_identifier(key)]
    return found


def is_identifier(node: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()


def parts_of(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def retired(name: str, path: Path = SOURCE) -> bool:
    """Whole names are for the package: a test may keep what it printed in a variable `told`."""
    return bool(parts_of(name) & PARTS) or (name in NAMES and path.is_relative_to(SOURCE))


def retired_module(path: Path) -> bool:
    name = path.stem.removeprefix("test_")
    return name in MODULES or bool(parts_of(name) & PARTS)


def prose_of(path: Path) -> list[tuple[int, str]]:
    """Strings and comments of a Python file; every line of other files."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return list(enumerate(text.splitlines(), 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(t.start[0], t.string) for t in tokens if t.type in (tokenize.STRING, tokenize.COMMENT)]


def test_no_name_uses_a_retired_word():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in checked(".py")
        for line, name in names_in(ast.parse(path.read_text(encoding="utf-8")))
        if retired(name, path)
    ]
    modules = [str(path.relative_to(ROOT)) for path in checked(".py") if retired_module(path)]
    assert not found + modules, "\n".join(found + modules)


def test_no_sentence_uses_a_retired_word():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]}"
        for path in checked(".py", ".html", ".js", ".md")
        for line, text in prose_of(path)
        for match in RETIRED_IN_PROSE.finditer(text)
    ]
    assert not found, "\n".join(found)


def test_every_word_of_the_vocabulary_is_decided_on():
    agreed = {word.strip() for word in AGREED.replace("\n", " ").split(",")}
    decided = {word.lower() for word in PARTS | NAMES | MODULES} | {word.lower() for word in ORDINARY}
    open_ones = {word for word in agreed if word.lower() not in decided and not RETIRED_IN_PROSE.search(word)}
    assert not open_ones


def test_no_formatter_opt_outs():
    assert not [path for path in files("*.py") if "fmt: skip" in path.read_text(encoding="utf-8")]


def test_no_file_name_is_used_for_three_things():
    names = [path.stem for path in files("*.py") if path.stem != "__init__"]
    assert not sorted({name for name in names if names.count(name) > 2})


def test_retired_words_are_found():
    assert retired("climb_from")
    assert retired("SummitLike")
    assert not retired("clamp")
    assert RETIRED_IN_PROSE.search("Until the summit is in sight.")
