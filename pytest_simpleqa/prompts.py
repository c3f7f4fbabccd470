"""The prompt templates: three known placeholders, replaced in one pass, and nothing else."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from .errors import OptionError
from .records import Question

_PLACEHOLDER = re.compile(r"\{(question|target|predicted_answer)\}")

ANSWER_TEMPLATE = "{question}"
CONFIDENCE_REQUEST = (
    'After your answer write one more line, "Confidence: N%", where N is how likely your answer is to be right, '
    "from 0 to 100."
)


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt text with placeholders; braces around anything else stay as they are."""

    text: str
    asks_confidence: bool = False
    """Whether the answer is to state how sure it is, for us to take out again."""

    @property
    def sha256(self) -> str:
        """Hash of the template's UTF-8 text, as it stands in the Report's provenance."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def placeholders(self) -> frozenset[str]:
        """The known placeholders that the text uses."""
        return frozenset(_PLACEHOLDER.findall(self.text))

    def render(self, question: Question, predicted: str = "") -> str:
        """Return the text with the placeholders replaced in one pass: inserted text is never read again."""
        values = {"question": question.problem, "target": question.answer, "predicted_answer": predicted}
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.text)

    def asking_confidence(self) -> Template:
        """Return the prompt that asks for a stated confidence as well."""
        return Template(f"{self.text.rstrip()}\n\n{CONFIDENCE_REQUEST}", asks_confidence=True)

    def require(self, option: str, *names: str) -> None:
        """Raise OptionError if a placeholder of `names` is missing, naming `option`."""
        missing = [f"{{{name}}}" for name in names if name not in self.placeholders]
        if missing:
            raise OptionError(
                f"{option}: the prompt lacks {' and '.join(missing)}; it needs "
                + ", ".join(f"{{{name}}}" for name in names)
            )


@cache
def grade_template() -> Template:
    """Return the built-in judge prompt (a condensed form of OpenAI's rubric)."""
    path = resources.files("pytest_simpleqa") / "data" / "grade_prompt.txt"
    return Template(path.read_bytes().decode("utf-8"))
