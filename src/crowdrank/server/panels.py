"""Recruitment panels: the parameters that they add to the public link, and what their participants get at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from crowdrank.server.projection import Projection
from crowdrank.server.records import Annotator
from crowdrank.server.settings import Joining, PanelCodes

Json = dict[str, Any]
MAX_PARAMETER_LENGTH = 300
_NOT_ACCEPTED = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""The id of the assignment while a worker of Mechanical Turk only looks at a task."""
_MTURK_HOSTS = ("www.mturk.com", "workersandbox.mturk.com")


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A recruitment panel, which adds parameters to the public link.

    Parameters
    ----------
    name : str
        Its name in settings and exports.
    parameters : tuple of str
        The parameters that are stored. The first one is the id of the participant.
    completion_url : str, optional
        Where participants go with a code, if the settings do not say so.
    """

    name: str
    parameters: tuple[str, ...]
    completion_url: str | None = None


PANELS = (
    Panel(
        name="prolific",
        parameters=("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
        completion_url="https://app.prolific.com/submissions/complete?cc={code}",
    ),
    Panel(name="mturk", parameters=("workerId", "assignmentId", "hitId", "turkSubmitTo")),
    Panel(name="cloudresearch", parameters=("participantId", "assignmentId", "projectId")),
)
"""The panels whose parameters are known. CloudResearch also sends those of Mechanical Turk."""


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """Someone whom a panel sent.

    Parameters
    ----------
    panel : Panel
    values : dict of str to str
        The parameters of the panel that the link had.
    """

    panel: Panel
    values: dict[str, str]

    @property
    def id(self) -> str:
        return self.values.get(self.panel.parameters[0], "")

    @property
    def only_looks(self) -> bool:
        """Whether a worker of Mechanical Turk has not accepted the task yet."""
        return self.values.get("assignmentId") == _NOT_ACCEPTED


def arrival(parameters: Mapping[str, str], joining: Joining) -> Arrival | None:
    """Return from which panel someone comes, according to the parameters of the link; None if from nowhere known."""
    other = [Panel(name="panel", parameters=joining.panel_parameters)] if joining.panel_parameters else []
    for panel in (*PANELS, *other):
        found = {key: parameters[key][:MAX_PARAMETER_LENGTH] for key in panel.parameters if parameters.get(key)}
        if panel.parameters[0] in found or found.get("assignmentId") == _NOT_ACCEPTED:
            return Arrival(panel=panel, values=found)
    return None


def find_participant(projection: Projection, who: Arrival) -> Annotator | None:
    """Return the annotator with the same id of the same panel; None if they are new."""
    key = who.panel.parameters[0]
    for annotator in projection.annotators.values():
        values = annotator.metadata.get("panel")
        same_panel = annotator.metadata.get("panel_name", who.panel.name) == who.panel.name
        if same_panel and isinstance(values, dict) and who.id and values.get(key) == who.id:
            return annotator
    return None


def ending(joining: Joining, annotator: Annotator, *, earned: bool) -> Json:
    """Return the code, the URL and the form that someone who has finished gets; of those screened out if excluded."""
    kind = "screen_out" if annotator.is_shut_out else "completion"
    panel = _panel_of(annotator)
    found = annotator.metadata.get("panel")
    values: dict[str, str] = {key: str(value) for key, value in found.items()} if isinstance(found, dict) else {}
    code, url = _code_and_url(joining, kind, panel)
    offered = kind == "completion" and (code is not None or url is not None)
    if not earned and kind == "completion":
        code = url = None
    for key, value in {**values, "code": code or ""}.items():
        url = url.replace(f"{{{key}}}", quote(value, safe="")) if url else None
    return {
        "completion_code": code,
        "completion_url": url,
        "completion_form": _mturk_form(values, code) if panel is not None and panel.name == "mturk" else None,
        "completion_withheld": offered and not earned,
    }


def _code_and_url(joining: Joining, kind: str, panel: Panel | None) -> tuple[str | None, str | None]:
    table: Joining | PanelCodes = joining
    if panel is not None:
        own: PanelCodes = getattr(joining.panels, panel.name)
        if getattr(own, f"{kind}_code") is not None or getattr(own, f"{kind}_url") is not None:
            table = own
    code, url = getattr(table, f"{kind}_code"), getattr(table, f"{kind}_url")
    if url is None and code is not None and panel is not None:
        url = panel.completion_url
    return code, url


def _mturk_form(values: Mapping[str, str], code: str | None) -> Json | None:
    """Return the form that submits a task to Mechanical Turk, to one of its own servers only."""
    host = urlsplit(values.get("turkSubmitTo", "")).hostname
    if code is None or host not in _MTURK_HOSTS or "assignmentId" not in values:
        return None
    fields = {"assignmentId": values["assignmentId"], "code": code}
    return {"action": f"https://{host}/mturk/externalSubmit", "fields": fields}


def id_on_panel(annotator: Annotator, joining: Joining) -> str:
    """Return the id that a panel knows an annotator by; empty if they did not come from one."""
    values, panel = annotator.metadata.get("panel"), _panel_of(annotator)
    parameters = joining.panel_parameters if panel is None else panel.parameters
    return str(values.get(parameters[0], "")) if isinstance(values, dict) and parameters else ""


def _panel_of(annotator: Annotator) -> Panel | None:
    return next((one for one in PANELS if one.name == annotator.metadata.get("panel_name")), None)
