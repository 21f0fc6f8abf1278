"""The state of a collection in memory: the log, folded row by row. Processes that have read the same rows agree."""

from __future__ import annotations

import threading
from itertools import combinations
from typing import Any

import numpy as np

from crowdrank.active.questions import pack_pair
from crowdrank.arrays import IntArray
from crowdrank.data import LEFT, RIGHT
from crowdrank.online import Beliefs, CrowdBT
from crowdrank.server.records import Annotator, BeliefProjection, GrowingColumn, Item, OpenAssignment, TaskVote
from crowdrank.server.settings import Settings
from crowdrank.storage import (
    SKIPPED,
    TASK_TYPES,
    AssignmentColumns,
    Batch,
    Collection,
    Event,
    Question,
    VoteColumns,
)
from crowdrank.storage.judgments import implied_pairs

_BATCH_SIZE = 10_000
_STATES = {"paused": "paused", "resumed": "open", "closed": "closed"}
_IRRELEVANT_FOR_BOARD = {
    "annotator_added",
    "annotator_edited",
    "token_issued",
    "token_revoked",
    "noted",
    *_STATES,
}


class Projection:
    """The current state of a collection. `catch_up` reads new rows of the log; nothing else accesses the database.

    Attributes
    ----------
    lock : RLock
        Held while rows are applied, and while a pair is chosen from this state.
    seq : int
        The last row that was applied.
    settings : Settings
    state : {"open", "paused", "closed"}
    state_since : int
        When it became so, in microseconds since 1970; 0 if it has always been open.
    items : dict of int to Item
    item_ids : list of int
        The ids of items, by code.
    hidden : set of int
        The codes of hidden items.
    owned : dict of str to set of int
        The codes of the items of each owner, by the owner's name.
    annotators : dict of int to Annotator
    appearances : array of int
        By item code: in how many votes that count it appears.
    votes : BeliefProjection
        All votes as columns, and the beliefs after them.
    vote_seqs, vote_policies, vote_times : list
        By vote: its row, what chose its pair, and its time in microseconds since 1970.
    vote_gold : list of int
        By vote: the item known to be better; 0 if unknown.
    response_ms : list of int
        By vote: the response time; -1 if it was not measured.
    task_votes : dict of int to TaskVote
        By vote: what was asked and answered, if it is more than a pair.
    open_assignments : dict of int to OpenAssignment
        By annotator.
    board_seq : int
        The last row that can change the board.
    last_revocation : int
        The last row that revoked a token, or changed an account.
    """

    def __init__(self, collection: Collection, model: CrowdBT | None = None) -> None:
        self._collection = collection
        self.lock = threading.RLock()
        self.seq = 0
        self.settings, self.state, self.state_since = Settings(), "open", 0
        self.items: dict[int, Item] = {}
        self.item_ids: list[int] = []
        self.hidden: set[int] = set()
        self.owned: dict[str, set[int]] = {}
        self.annotators: dict[int, Annotator] = {}
        self.appearances: IntArray = np.zeros(0, np.int64)
        self.votes = BeliefProjection(CrowdBT() if model is None else model)
        self.vote_seqs: list[int] = []
        self.vote_policies: list[str] = []
        self.vote_gold: list[int] = []
        self.vote_times: list[int] = []
        self.response_ms: list[int] = []
        self.task_votes: dict[int, TaskVote] = {}
        self.open_assignments: dict[int, OpenAssignment] = {}
        self.board_seq = 0
        self.last_revocation = 0
        self._n_reads = 0
        self._annotator_ids: list[int] = []  # by code
        self._index_by_seq: dict[int, int] = {}
        self._asked: dict[int, tuple[str, int, Question | None]] = {}
        self._setting_values: dict[str, Any] = {}
        self._withdrawn = GrowingColumn(bool)

    def catch_up(self, up_to: int | None = None) -> Projection:
        """Apply new rows of the log, all of them or up to row `up_to`."""
        before = self._n_reads
        with self.lock:
            if up_to is None and self._n_reads > before:
                return self  # while we waited for the lock, another thread started and finished a newer read
            self._n_reads += 1
            limit = _BATCH_SIZE
            while limit == _BATCH_SIZE:
                limit = _BATCH_SIZE if up_to is None else min(_BATCH_SIZE, up_to - self.seq)
                batch = self._collection.log.after(self.seq, max(0, limit))
                if batch.last > self.seq:
                    limit = _BATCH_SIZE if batch.last - self.seq == _BATCH_SIZE else 0
                    self._apply(batch)
                else:
                    limit = 0
            return self

    @property
    def beliefs(self) -> Beliefs:
        return self.votes.beliefs()

    @property
    def n_counted(self) -> int:
        """The number of votes that count."""
        return self.votes.n_counted

    def pending(self, now: int) -> list[OpenAssignment]:
        """Return the questions that someone is looking at, so that nobody else is asked the same meanwhile."""
        since = now - self.settings.questions.lease_seconds * 1_000_000
        return [assignment for assignment in self.open_assignments.values() if assignment.at > since]

    def vote_index(self, seq: int) -> int:
        """Return the index of the vote with this row number among all votes."""
        return self._index_by_seq[seq]

    def is_withdrawn(self, index: int) -> bool:
        """Return whether a vote was undone or voided."""
        return bool(self._withdrawn.values[index])

    def is_gold_failure(self, index: int) -> bool:
        """Return whether a vote chose the worse item of a gold pair, and was not withdrawn."""
        gold, outcome = self.vote_gold[index], self.votes.outcome[index]
        if not gold or outcome not in (LEFT, RIGHT) or self.is_withdrawn(index):
            return False
        winner = self.votes.left[index] if outcome == LEFT else self.votes.right[index]
        return bool(self.item_ids[winner] != gold)

    def _apply(self, batch: Batch) -> None:
        # New items and annotators first, then assignments and votes, then the events that change how votes count.
        added = [event for event in batch.events if event.kind in ("item_added", "annotator_added")]
        for event in added:
            (self._item_added if event.kind == "item_added" else self._annotator_added)(event)
        self._add_labels(added)
        self._apply_assignments(batch.assignments)
        self._apply_votes(batch.votes)
        for event in batch.events:
            if (handler := getattr(self, f"_{event.kind}", None)) is not None and event not in added:
                handler(event)
        self.seq = batch.last
        relevant = [event.seq for event in batch.events if event.kind not in _IRRELEVANT_FOR_BOARD]
        self.board_seq = max([self.board_seq, *relevant, *batch.votes.seq[-1:].tolist()])

    def _add_labels(self, added: list[Event]) -> None:
        items = [self.items[event.seq] for event in added if event.kind == "item_added"]
        self.votes.add_labels(
            [(item.query, item.label) for item in items],
            [self.annotators[event.seq].name for event in added if event.kind == "annotator_added"],
        )
        self.appearances = np.append(self.appearances, np.zeros(len(items), np.int64))

    def _item_added(self, event: Event) -> None:
        detail = event.detail
        item = Item(
            event.seq,
            len(self.items),
            str(detail["label"]),
            str(detail.get("query", "")),
            dict(detail.get("content", {})),
        )
        self.items[event.seq] = item
        self.item_ids.append(event.seq)
        if item.owner:
            self.owned.setdefault(item.owner, set()).add(item.code)

    def _annotator_added(self, event: Event) -> None:
        name, metadata = str(event.detail["name"]), dict(event.detail.get("metadata", {}))
        self._annotator_ids.append(event.seq)
        self.annotators[event.seq] = Annotator(event.seq, len(self.annotators), name, metadata)

    def _item_edited(self, event: Event) -> None:
        item = self.items[event.subject]
        self.owned.get(item.owner, set()).discard(item.code)
        item.content = dict(event.detail["content"])
        if item.owner:
            self.owned.setdefault(item.owner, set()).add(item.code)

    def _item_hidden(self, event: Event) -> None:
        self.items[event.subject].hidden = True
        self.hidden.add(self.items[event.subject].code)

    def _item_shown(self, event: Event) -> None:
        self.items[event.subject].hidden = False
        self.hidden.discard(self.items[event.subject].code)

    def _annotator_edited(self, event: Event) -> None:
        self.annotators[event.subject].metadata = dict(event.detail["metadata"])

    def _annotator_excluded(self, event: Event) -> None:
        annotator = self.annotators[event.subject]
        annotator.excluded, annotator.quarantined = True, bool(event.detail.get("quarantine"))
        annotator.excluded_because = str(event.detail.get("reason", ""))
        self._update_counts(self.annotators[event.subject].votes)

    def _annotator_included(self, event: Event) -> None:
        annotator = self.annotators[event.subject]
        annotator.excluded = annotator.quarantined = False
        annotator.excluded_because = ""
        self._update_counts(self.annotators[event.subject].votes)

    def _annotator_erased(self, event: Event) -> None:
        annotator, name = self.annotators[event.subject], str(event.detail["name"])
        old, annotator.name, annotator.erased = annotator.name, name, True
        annotator.metadata = {key: value for key, value in annotator.metadata.items() if key == "consent"}
        annotator.excluded_because = "erased" if annotator.excluded_because == "erased" else ""
        self.votes.rename_annotator(annotator.code, name)
        self.open_assignments.pop(annotator.id, None)
        for item in self.items.values():
            if item.owner == old:
                item.content["owner"] = name
        if old != name and old in self.owned:
            self.owned[name] = self.owned.pop(old)

    def _settings_changed(self, event: Event) -> None:
        self._setting_values |= event.detail
        self.settings = Settings.from_dict(
            {key: value for key, value in self._setting_values.items() if value is not None}
        )

    def _token_revoked(self, event: Event) -> None:
        self.last_revocation = event.seq

    def _noted(self, event: Event) -> None:
        if event.detail.get("access"):  # an account was changed
            self.last_revocation = event.seq

    def _paused(self, event: Event) -> None:
        self.state, self.state_since = _STATES[event.kind], event.at

    _resumed = _closed = _paused

    def _undo(self, event: Event) -> None:
        index = self._index_by_seq[event.subject]
        if not self.is_withdrawn(index):
            annotator = self.annotators[self._annotator_ids[int(self.votes.annotator[index])]]
            is_skip = bool(self.votes.outcome[index] == SKIPPED)
            annotator.skipped -= is_skip
            annotator.decided -= not is_skip
        self._withdrawn.values[index] = True
        self._update_counts([index])

    _void = _undo

    def _apply_assignments(self, new: AssignmentColumns) -> None:
        columns = (new.seq, new.at, new.annotator, new.left, new.right, new.gold)
        for policy, seq, at, annotator, left, right, gold in zip(
            new.policy, *(column.tolist() for column in columns), strict=True
        ):
            question = new.question.get(seq)
            items = (left, right) if question is None else question.items
            if question is None or question.is_pair:
                surplus = self.annotators[annotator].left_surplus
                surplus[self.items[left].code] += 1
                surplus[self.items[right].code] -= 1
            self._asked[seq] = (policy, gold, question)
            self.open_assignments[annotator] = OpenAssignment(seq, at, annotator, items)

    def _apply_votes(self, new: VoteColumns) -> None:
        if not len(new):
            return
        annotators = [self.annotators[id_] for id_ in new.annotator.tolist()]
        start = len(self.votes)
        left, right = (np.zeros(len(new), np.int64) for _ in range(2))
        implied: dict[int, list[tuple[int, int]]] = {}
        rows = zip(annotators, new.seq.tolist(), new.assignment.tolist(), strict=True)
        sides = list(zip(new.left.tolist(), new.right.tolist(), strict=True))
        for position, (annotator, seq, assignment) in enumerate(rows):
            index = start + position
            annotator.votes.append(index)
            self._index_by_seq[seq] = index
            self.vote_seqs.append(seq)
            last = self.open_assignments.get(annotator.id)
            if last is not None and last.seq == assignment:
                del self.open_assignments[annotator.id]
            policy, gold, question = self._asked.pop(assignment)
            self.vote_policies.append(policy)
            self.vote_gold.append(gold)
            if question is not None:
                self.task_votes[index] = TaskVote(question, new.answer.get(seq))
            if question is None or question.is_pair:
                left[position], right[position] = (self.items[id_].code for id_ in sides[position])
                annotator.add_answered(int(pack_pair(left[position], right[position])))
            else:
                implied[position] = self._apply_task_vote(annotator, self.task_votes[index])
        self.vote_times += new.at.tolist()
        self.response_ms += new.response_ms.tolist()
        self._withdrawn.append(np.zeros(len(new), bool))
        for annotator, skipped in zip(annotators, (new.outcome == SKIPPED).tolist(), strict=True):
            annotator.skipped += skipped
            annotator.decided += not skipped
        counts = (new.outcome != SKIPPED) & ~np.array([annotator.excluded for annotator in annotators])
        codes = np.array([annotator.code for annotator in annotators])
        self.votes.append(left, right, codes, new.outcome, counts, implied)
        self._count_appearances(np.arange(start, len(self.votes))[counts], 1)

    def _apply_task_vote(self, annotator: Annotator, vote: TaskVote) -> list[tuple[int, int]]:
        """Remember what the annotator has seen, and return the pairs (better, worse) that the vote implies."""
        codes = [self.items[id_].code for id_ in vote.question.items]
        annotator.answered_items.update(codes)
        for one, other in combinations(codes, 2):
            annotator.add_answered(int(pack_pair(one, other)))
        if vote.answer is None or vote.question.task == "rating":
            return []
        places = TASK_TYPES[vote.question.task].places(vote.answer["value"], vote.question)
        return [(self.items[better].code, self.items[worse].code) for better, worse in implied_pairs(places)]

    def _update_counts(self, indices: list[int]) -> None:
        """Decide again whether votes count, after a withdrawal or an exclusion."""
        rows = np.array(indices, np.int64)
        if not len(rows):
            return
        votes = self.votes
        excluded = np.array([annotator.excluded for annotator in self.annotators.values()])[votes.annotator[rows]]
        counts = (votes.outcome[rows] != SKIPPED) & ~self._withdrawn.values[rows] & ~excluded
        changed = counts != votes.counts[rows]
        self._count_appearances(rows[changed & counts], 1)
        self._count_appearances(rows[changed & ~counts], -1)
        votes.set_counts(rows, counts)

    def _count_appearances(self, rows: IntArray, by: int) -> None:
        tasks = [row for row in rows.tolist() if row in self.task_votes] if self.task_votes else []
        sets = [row for row in tasks if not self.task_votes[row].question.is_pair]
        pairs = rows[~np.isin(rows, sets)] if sets else rows
        for side in (self.votes.left, self.votes.right):
            np.add.at(self.appearances, side[pairs], by)
        for row in sets:
            for id_ in self.task_votes[row].question.items:
                self.appearances[self.items[id_].code] += by
