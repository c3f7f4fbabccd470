"""Progress in a chat: the hook `pytest_simpleqa_event` posts start, progress and end to a webhook.

Copy this file into an empty folder as `conftest.py` and type there:

    pytest --simpleqa-dataset=sample --answer-llm local --judge-llm rules

It posts nothing yet: what it would post is added to `chat.jsonl`. Put the address of an incoming webhook (Slack,
Mattermost and others take this form) into the environment variable CHAT_WEBHOOK_URL, and it posts in earnest.
The address is a secret: it stands in no message here. A chat that is down costs a warning, never the run.
"""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path

from pytest_simpleqa import Event

TIMEOUT_S = 5


def pytest_simpleqa_event(event: Event) -> None:
    """Post one event, or note what would be posted."""
    message = json.dumps({"text": f"*{_plain(event.title)}*\n{_plain(event.body)}"})
    url = os.environ.get("CHAT_WEBHOOK_URL")
    if url:
        _post(url, message)
    else:
        with Path("chat.jsonl").open("a", encoding="utf-8") as file:
            file.write(message + "\n")


def _plain(text: str) -> str:
    """Escape what a chat would read as a link or a mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _post(url: str, message: str) -> None:
    if not url.startswith(("https://", "http://")):
        raise ValueError("CHAT_WEBHOOK_URL is no http(s) address")
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, message.encode("ascii"), headers)  # noqa: S310  checked above
    with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310  likewise
        pass
