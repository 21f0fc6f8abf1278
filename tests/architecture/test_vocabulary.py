"""The code uses the field's terms: no retired term is left in names, docstrings, messages or pages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "crowdrank"

# Parts of names, split at underscores and capitals. "Walk" and "slope" are allowed: a random walk, a regression slope.
RETIRED_IN_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        climb climbs climbed summit summits bend bends heights upright mirrored outright walked stride pace
        glide glided gliding stretching gate gates pull pulls sway sways sight sights blur hazard conclude
        foretell foretold foretelling knowing knock island islands recipe recipes awaiting telling doubtful anyone
        wish truths lies pushes unseen contender contenders chances lesson teachers learnt door desk outlook
        scout scouts
        """,
    )
)
RETIRED_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        Found Health Roll Choices Drawing Turn Live Thing Person Kinds Habits Leanings Seats Asked Refits
        starting_at made_whole warmed look_again look_through leaving_out need told
        """,
    )
)
# Words and phrases of docstrings, comments, messages and pages.
RETIRED_IN_PROSE = re.compile(
    r"\b(?:climb\w*|summits?|foretell\w*|foretold|outright|upright|sways?|swayed|glid(?:e|es|ing)|knock\w*|islands?"
    r"|so manieth|hangs? on|passed over|reckon\w*|the door|in sight|as far as that)\b",
    re.IGNORECASE,
)


def files(pattern: str) -> list[Path]:
    return sorted(SOURCE.rglob(pattern))


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
    return found


def parts_of(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def retired(name: str) -> bool:
    return name in RETIRED_NAMES or bool(parts_of(name) & RETIRED_IN_NAMES)


def prose_of(path: Path) -> list[tuple[int, str]]:
    """Strings and comments of a Python file; every line of other files."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return list(enumerate(text.splitlines(), 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(t.start[0], t.string) for t in tokens if t.type in (tokenize.STRING, tokenize.COMMENT)]


def test_no_name_uses_a_retired_word():
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {name}"
        for path in files("*.py")
        for line, name in names_in(ast.parse(path.read_text(encoding="utf-8")))
        if retired(name)
    ]
    modules = [str(path.relative_to(SOURCE)) for path in files("*.py") if retired(path.stem)]
    assert not found + modules, "\n".join(found + modules)


def test_no_sentence_uses_a_retired_word():
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {match[0]}"
        for suffix in ("*.py", "*.html", "*.js", "*.md")
        for path in files(suffix)
        for line, text in prose_of(path)
        for match in RETIRED_IN_PROSE.finditer(text)
    ]
    assert not found, "\n".join(found)


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
