"""The scheduler that deals questions: every worker's queue stays deeper than its look-ahead to the very end."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

import pytest
from xdist.scheduler import LoadScheduling


class Dealer(Protocol):
    """What the controller decides about its workers (`node` is xdist's WorkerController)."""

    @property
    def active(self) -> int:
        """How many workers get questions."""
        ...

    def takes_questions(self, node: Any) -> bool:
        """Tell whether a worker has a share of what may be in flight."""
        ...

    def depth(self, node: Any) -> int:
        """Return how deep a worker's queue is to be."""
        ...

    def is_question(self, node_id: str) -> bool:
        """Tell whether an item is a question of any run."""
        ...

    def blames_first(self, node: Any, queued: Sequence[str]) -> bool:
        """Tell whether a dead worker fell to the first item of its queue."""
        ...


class QuestionScheduling(LoadScheduling):  # type: ignore[misc]  # xdist ships no py.typed
    """Deals ordinary tests as `--dist load` does, then the questions, evenly and in order."""

    collection: list[str] | None
    pending: list[int]
    node2pending: dict[Any, list[int]]
    nodes: list[Any]
    maxschedchunk: int | None

    def __init__(self, config: pytest.Config, log: Any, dealer: Dealer) -> None:
        super().__init__(config, log)
        self._dealer = dealer
        self._questions: deque[int] = deque()
        """Indices of questions not dealt yet."""

    @property
    def tests_finished(self) -> bool:
        return not self._questions and bool(super().tests_finished)

    @property
    def has_pending(self) -> bool:
        return bool(self._questions) or bool(super().has_pending)

    def schedule(self) -> None:
        """Deal for the first time, or to a worker that has joined since."""
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                return
            self.collection = next(iter(self.node2collection.values()))
            self._sort(range(len(self.collection)))
            self.maxschedchunk = self.maxschedchunk or max(1, len(self.collection))
            first = max(2, len(self.pending) // len(self.nodes) // 4)
            for node in self.nodes:
                self._send_tests(node, min(first, max(2, self.maxschedchunk)))
        fair = self._fair
        for node in self.nodes:
            self.check_schedule(node, fair=fair)

    def check_schedule(self, node: Any, duration: float = 0, fair: int = 0) -> None:
        """Refill the queue of `node`; shut it down where no question may come its way.

        Who takes questions waits at its last one, which is asked already, until all do: xdist shuts them down
        together then, and till then each can take over what a lost one leaves.
        """
        if node.shutting_down:
            return
        if self.pending:
            super().check_schedule(node, duration)
        if not self.pending:
            if not self._dealer.takes_questions(node):
                node.shutdown()
            elif self._questions:
                self._deal(node, fair or self._fair)
            elif not self._ends_in_question(node):
                node.shutdown()

    def remove_node(self, node: Any) -> str | None:
        """Take back what a dead worker was queued; return the item that killed it, where that is known."""
        left = self.node2pending.pop(node)
        if not left:
            return None
        assert self.collection is not None
        is_to_blame = self._dealer.blames_first(node, [self.collection[index] for index in left])
        crashed = self.collection[left.pop(0)] if is_to_blame else None
        self._sort(left)
        for other in self.node2pending:
            self.check_schedule(other)
        return crashed

    def _ends_in_question(self, node: Any) -> bool:
        queued = self.node2pending[node]
        return bool(queued) and self.collection is not None and self._dealer.is_question(self.collection[queued[-1]])

    @property
    def _fair(self) -> int:
        """A worker's share of what is not dealt yet."""
        return -(-len(self._questions) // self._dealer.active)

    def _deal(self, node: Any, fair: int) -> None:
        queued, depth = len(self.node2pending[node]), self._dealer.depth(node)
        if queued >= depth:
            return
        count = min(depth + depth // 4 - queued, max(fair, 2 - queued), len(self._questions))
        indices = [self._questions.popleft() for _ in range(count)]
        self.node2pending[node].extend(indices)
        with contextlib.suppress(OSError):  # it is lost, and xdist about to say so: they are taken back then
            node.send_runtest_some(indices)

    def _sort(self, indices: Any) -> None:
        """Put indices back in front: questions here, ordinary tests where `--dist load` finds them."""
        assert self.collection is not None
        is_mine = {index: self._dealer.is_question(self.collection[index]) for index in indices}
        self._questions.extendleft(reversed([index for index, mine in is_mine.items() if mine]))
        self.pending[:0] = [index for index, mine in is_mine.items() if not mine]
