"""Random requests, valid or not, never cause a 5xx, and every error has the same form."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from tests.server.conftest import Played

_EXAMPLES = 5


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    played = Played(str(tmp_path_factory.mktemp("schema") / "c.db"), media=tmp_path_factory.mktemp("media"))
    (played.annotator,) = played.join("ann")
    played.service.limiter.take = lambda *_: None  # rate limits are tested elsewhere
    played.service.boards.latest = lambda *_: played.service.boards.build(0)
    played.play(played.annotator, ["left", "tie"])
    yield played
    played.service.stop()


def test_no_request_causes_an_internal_error(served):
    described = schemathesis.openapi.from_asgi("/api/v1/openapi.json", served.app)
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 20
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try_out(operation.as_strategy(generation_mode=mode), served)
    text = served.client.get("/metrics", headers=served.admin).text
    assert sum(int(n) for n in re.findall(r"^crowdrank_requests_total.* (\d+)$", text, re.M)) > 400


def try_out(cases, served):
    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def one(case):
        for token in (served.secret, served.annotator, None):
            case.headers = {name: value for name, value in (case.headers or {}).items() if name != "Authorization"}
            if token is not None:
                case.headers["Authorization"] = f"Bearer {token}"
            answer = case.call()
            assert answer.status_code < 500, f"{case.method} {case.formatted_path}: {answer.text}"
            if answer.status_code >= 400:
                told = answer.json()
                assert set(told) == {"error"}, answer.text
                assert set(told["error"]) == {"code", "message", "detail"}

    with suppress(Unsatisfiable):  # nothing can be sent that is not allowed
        one()
