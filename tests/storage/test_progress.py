"""Whatever an annotator does: remaining, decided and skipped questions add up to the quota."""

import atexit
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from crowdrank.storage import Collection, ConflictError, ExpiredError, QuotaReachedError
from tests.storage.conftest import Clock

QUOTA = 4
CLOCK = Clock()
_numbers = count()


@cache
def the_collection():
    """One collection for all runs; each run has its own annotator."""
    folder = tempfile.mkdtemp()
    collection = Collection.open(Path(folder) / "c.db", clock=CLOCK, durable=False)
    collection.items.add(["a", "b", "c"], actor="admin")
    atexit.register(shutil.rmtree, folder)
    atexit.register(collection.close)
    return collection


class AnnotatorMachine(RuleBasedStateMachine):
    """The reference model: a list of votes that count, and the open assignment."""

    @initialize()
    def start(self):
        self.clock, self.collection = CLOCK, the_collection()
        self.items = sorted(self.collection.items.all())
        self.name = f"annotator {next(_numbers)}"
        self.who = self.collection.annotators.add([self.name], actor="admin")[0]
        self.standing, self.open, self.spent = [], None, []

    def teardown(self):
        judgments = self.collection.log.judgments()
        mine = judgments.annotators[judgments.annotator] == self.name
        assert mine.sum() == sum(answer != "skip" for _, answer in self.standing)

    @rule(pair=st.permutations(range(3)))
    def ask(self, pair):
        left, right, _ = (self.items[n] for n in pair)
        held = self.open is not None and self.open.expires_at > self.clock()
        told = {"policy": "random", "probability": 1.0, "quota": QUOTA, "seconds": 60}
        if len(self.standing) == QUOTA and not held:
            with pytest.raises(QuotaReachedError):
                self.collection.assignments.create(self.who, left, right, **told)
            return
        asked = self.collection.assignments.create(self.who, left, right, **told)
        assert asked.already_held == held
        if held:
            assert asked.seq == self.open.seq
        elif self.open is not None:
            self.spent.append((self.open.token, None))
        self.open = asked

    @rule(answer=st.sampled_from(["left", "right", "tie", "skip"]))
    def answer(self, answer):
        if self.open is not None:
            said = {"left": self.open.left, "right": self.open.right}.get(answer, answer)
            vote = self.collection.votes.record(self.open.token, said, annotator=self.who)
            assert (vote.outcome, vote.replayed) == (answer, False)
            self.standing.append((vote.seq, answer))
            self.spent.append((self.open.token, said))
            self.open = None

    @rule(data=st.data())
    def answer_again(self, data):
        if self.spent:
            token, said = data.draw(st.sampled_from(self.spent))
            if said is None:
                with pytest.raises(ExpiredError):
                    self.collection.votes.record(token, "tie", annotator=self.who)
            else:
                assert self.collection.votes.record(token, said, annotator=self.who).replayed
                other = "skip" if said != "skip" else "tie"
                with pytest.raises(ConflictError):
                    self.collection.votes.record(token, other, annotator=self.who)

    @rule()
    def undo(self):
        if self.standing:
            seq, _ = self.standing.pop()
            if self.open is not None:
                self.spent.append((self.open.token, None))
            self.open = self.collection.votes.undo(self.who, seq, seconds=60)

    @rule(seconds=st.sampled_from([10, 100]))
    def wait(self, seconds):
        self.clock.pass_seconds(seconds)

    @rule(data=st.data())
    def void(self, data):
        if self.standing:
            gone = data.draw(st.sampled_from(self.standing))
            # undo applies to the last vote that counts, so a void vote is not counted at all
            assert self.collection.votes.void([gone[0]], actor="admin") == [gone[0]]
            self.standing.remove(gone)

    @invariant()
    def it_adds_up(self):
        found = self.collection.assignments.progress(self.who, QUOTA)
        skipped = sum(answer == "skip" for _, answer in self.standing)
        assert (found.skipped, found.decided) == (skipped, len(self.standing) - skipped)
        assert found.remaining + found.decided + found.skipped == QUOTA


TestAnnotatorMachine = AnnotatorMachine.TestCase
TestAnnotatorMachine.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
