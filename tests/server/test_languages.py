"""The catalogues of languages are complete, and the pages for annotators use them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from crowdrank.errors import SettingError
from crowdrank.server import translation
from crowdrank.server.settings import SKIP_REASONS, Settings
from crowdrank.server.translation import LANGUAGES, translator

FOLDER = Path(translation.__file__).parent / "languages"
ENGLISH = tomllib.loads((FOLDER / "en.toml").read_text(encoding="utf-8"))


def names_in(text):
    return sorted(re.findall(r"\{(\w+)\}", text))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text(language):
    catalogue = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    assert catalogue["direction"] == ("rtl" if language == "ar" else "ltr")
    for part in ("page", "script", "reasons"):
        assert list(catalogue[part]) == list(ENGLISH[part])
        for name, text in catalogue[part].items():
            assert text.strip()
            assert names_in(text) == names_in(ENGLISH[part][name]), name
    if language != "en":
        same = [name for name, text in catalogue["page"].items() if text == ENGLISH["page"][name]]
        assert len(same) <= 3, same
    assert set(catalogue["reasons"]) == set(SKIP_REASONS)


def test_there_is_a_file_per_language_and_no_other():
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(LANGUAGES)


def test_unknown_languages_are_refused():
    with pytest.raises(SettingError, match="one of en, de"):
        Settings.from_dict({"language": "tlh"})


@pytest.mark.parametrize("language", ["de", "ar"])
def test_pages_are_in_the_language_of_the_study(start, language):
    played = start(settings={"language": language, "budget": {"per_annotator": 1}})
    (ann,) = played.join("ann")
    client, t = played.enter(ann), translator(language)
    judge = client.get("/judge").text
    assert f'<html lang="{language}" dir="{t.direction}"' in judge
    for text in (t("choose", letter="A"), t("skip_why"), t.reason("I cannot decide")):
        assert text in judge
    assert "Choose A" not in judge
    assert 'value="I cannot decide"' in judge  # what is stored does not depend on the language
    played.play(ann, ["left"])
    assert t("finished_thanks") in client.get("/finished").text
    assert t("not_you") in client.get("/join").text
    client.cookies.clear()
    assert t("start") in client.get("/join").text
    assert '<html lang="en" dir="ltr"' in played.enter(played.secret, "admin").get("/admin").text
