"""Who is human and who is a language model, where the names of annotators make it plain."""

from __future__ import annotations

import re
from collections.abc import Iterable

from crowdrank.data.side_information import AnnotatorDetails

# Names of language models begin with one of these. Aliases of one family share a value.
_FAMILIES = {
    "gpt": "gpt",
    "chatgpt": "gpt",
    "text-davinci": "gpt",
    "claude": "claude",
    "gemini": "gemini",
    "palm": "palm",
    "llama": "llama",
    "alpaca": "alpaca",
    "vicuna": "vicuna",
    "koala": "koala",
    "mistral": "mistral",
    "mixtral": "mistral",
    "qwen": "qwen",
    "deepseek": "deepseek",
    "falcon": "falcon",
    "gemma": "gemma",
    "dolly": "dolly",
    "wizardlm": "wizardlm",
    "chatglm": "chatglm",
    "command-r": "command-r",
    "prometheus": "prometheus",
    "pandalm": "pandalm",
    "llm": "llm",
}
# The vendor in front is left out: openai/gpt-4. What follows must not be a letter: claudette is a person.
_MODEL = re.compile(
    rf"(?:[\w.-]+/)?({'|'.join(sorted(_FAMILIES, key=len, reverse=True))})(?![a-z]).*", re.IGNORECASE | re.DOTALL
)
_HUMAN = re.compile(r"(?:humans?|experts?|authors?|persons?|people|crowd|workers?)(?:[ _.:-]*\d+)?", re.IGNORECASE)
_MANY = 4


def model_family(name: str) -> str | None:
    """The family of a language model by its name; None for other names.

    Examples
    --------
    >>> model_family("openai/gpt-4-0125-preview"), model_family("Claudette")
    ('gpt', None)
    """
    found = _MODEL.fullmatch(name.strip())
    return None if found is None else _FAMILIES[found[1].lower()]


def people_from_names(names: Iterable[str]) -> dict[str, AnnotatorDetails]:
    """Kinds of annotators by their names; empty unless all names are plain and some are of language models.

    Parameters
    ----------
    names : iterable of str
        Names of all annotators.

    Returns
    -------
    dict of str to AnnotatorDetails
        The kind of each annotator. A family is not given: it is about errors in common, which names do not tell.

    Examples
    --------
    >>> {name: who.kind for name, who in people_from_names(["gpt-4", "expert_1"]).items()}
    {'gpt-4': 'llm', 'expert_1': 'human'}
    >>> people_from_names(["gpt-4", "ann"])
    {}
    """
    kinds = {}
    for name in names:
        if model_family(name) is not None:
            kinds[name] = "llm"
        elif _HUMAN.fullmatch(name.strip()):
            kinds[name] = "human"
        else:
            return {}
    return {name: AnnotatorDetails(kind=kind) for name, kind in kinds.items()} if "llm" in kinds.values() else {}


def describe_kinds(people: dict[str, AnnotatorDetails]) -> str:
    """A sentence that says which kinds were taken from names.

    Examples
    --------
    >>> describe_kinds(people_from_names(["gpt-4", "expert_1", "expert_2"]))
    'By their names, 1 annotator is a language model (gpt-4) and 2 are human: people= can say otherwise.'
    """
    models = [name for name, who in people.items() if who.kind == "llm"]
    humans = len(people) - len(models)
    more = f" and {len(models) - _MANY:,} more" if len(models) > _MANY else ""
    which = f"{', '.join(models[:_MANY])}{more}"
    one = "annotator is a language model" if len(models) == 1 else "annotators are language models"
    rest = f" and {humans:,} {'is' if humans == 1 else 'are'} human" if humans else ""
    return f"By their names, {len(models):,} {one} ({which}){rest}: people= can say otherwise."
