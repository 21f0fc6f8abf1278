"""The texts of the pages for annotators, one catalogue per language in `languages/`. Other pages are in English."""

from __future__ import annotations

import json
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "languages"
LANGUAGES = ("en", "de", "es", "fr", "zh", "ar")
"""Codes of the languages, as in the HTML attribute `lang`."""


class Translator:
    """The texts of one language. Call it with the name of a text and the values in it.

    Parameters
    ----------
    language : str
        A code in `LANGUAGES`.

    Examples
    --------
    >>> Translator("de")("done_of", done=3, quota=14)
    '3 von 14'
    """

    def __init__(self, language: str) -> None:
        self.language = language
        catalogue = tomllib.loads((_FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
        self.name, self.direction = str(catalogue["name"]), str(catalogue["direction"])
        self._texts: dict[str, str] = catalogue["page"]
        self._reasons: dict[str, str] = catalogue["reasons"]
        self.script = json.dumps(catalogue["script"], ensure_ascii=False)
        """The texts that scripts use, as JSON."""

    def __call__(self, name: str, **values: Any) -> str:
        return self._texts[name].format(**values)

    def has(self, name: str) -> bool:
        return name in self._texts

    def reason(self, text: str) -> str:
        """Translate a reason for skipping, if it is one of the defaults."""
        return self._reasons.get(text, text)


@lru_cache
def translator(language: str) -> Translator:
    """Return the texts of a language, read once."""
    return Translator(language)


def language_names() -> dict[str, str]:
    """Return the languages with their own names."""
    return {code: translator(code).name for code in LANGUAGES}
