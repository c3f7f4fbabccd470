"""Promises of `dataset`: questions with stable ids from every layout, and the population."""

from __future__ import annotations

import csv
import hashlib
import json
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_simpleqa.dataset import DatasetWarning, load_dataset, read_dataset, select, slug
from pytest_simpleqa.errors import DatasetError
from pytest_simpleqa.records import Dataset, Question


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def of_csv(folder: Path, text: str) -> Dataset:
    return read_dataset(write(folder / "questions.csv", text))


def of_json(folder: Path, *rows: Any) -> Dataset:
    return read_dataset(write(folder / "questions.json", json.dumps(rows)))


def only(dataset: Dataset) -> Question:
    (question,) = dataset
    return question


def test_the_official_set_loads_whole(shared_data: Path) -> None:
    """The official CSV gives 4,326 different questions, ten topics, five types, trimmed golds, newlines kept."""
    path = shared_data / "simple_qa_test_set.csv"
    dataset = read_dataset(path)
    with path.open(encoding="utf-8", newline="") as file:
        raw = list(csv.DictReader(file))
    assert dataset.name == "simple_qa_test_set.csv"
    assert dataset.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [question.id for question in dataset] == [f"q{number:04d}" for number in range(1, 4327)]
    assert [question.problem for question in dataset] == [row["problem"] for row in raw]
    assert [question.answer for question in dataset] == [row["answer"].strip() for row in raw]
    assert sum(row["answer"] != row["answer"].strip() for row in raw) == 211
    assert sum("\n" in row["problem"] + row["answer"] for row in raw) == 6
    assert len({question.fingerprint for question in dataset}) == 4326
    assert Counter(question.topic for question in dataset)["Art"] == 550
    assert len({question.topic for question in dataset}) == 10
    assert {question.answer_type for question in dataset} == {"Date", "Person", "Other", "Number", "Place"}
    assert all(set(question.metadata) == {"urls"} for question in dataset)


@pytest.mark.parametrize(
    ("file", "count", "topics", "gold"),
    [
        ("variants/simpleqa_verified.csv", 1000, 10, "120,000 euros"),
        ("variants/simpleqa_array.json", 4326, 1, "Michio Sugeno"),
        ("variants/chinese_simpleqa.jsonl", 3000, 6, "足阳明胃经"),
        ("variants/renamed_header_100.csv", 100, 10, "Michio Sugeno"),
        ("variants/czech_300.csv.gz", 300, 10, "Michio Sugeno"),
        ("runs/gpt-4o-2024-11-20.csv.gz", 4326, 1, "1880"),
        ("runs/gpt-4o-mini-2024-07-18.csv.gz", 4326, 1, "Shinjuku"),
        ("runs/gpt-4o-predictions-with-confidence.csv.gz", 4326, 1, "Michio Sugeno"),
        ("report.example.json", 5, 5, "Leonardo da Vinci"),
    ],
)
def test_every_public_layout_loads(shared_data: Path, file: str, count: int, topics: int, gold: str) -> None:
    """Every layout of the family gives all its rows, unique ids and the right gold, without a warning."""
    dataset = read_dataset(shared_data / file)
    assert len(dataset) == count
    assert len({question.id for question in dataset}) == count
    assert len({question.topic for question in dataset}) == topics
    assert dataset.questions[0].answer == gold


def test_a_layout_keeps_what_is_its_own(shared_data: Path) -> None:
    """Own ids are kept, the category is the topic, and the columns of other files stay in the metadata."""
    chinese = read_dataset(shared_data / "variants/chinese_simpleqa.jsonl").questions[0]
    assert (chinese.id, chinese.topic) == ("97e7f58a3b154facaa3a5c64d678c7bf", "中华文化")
    assert chinese.metadata["secondary_category"] == "中医"
    czech = read_dataset(shared_data / "variants/czech_300.csv.gz").questions[0]
    assert set(czech.metadata) == {"urls", "translated_problem", "translated_answer"}
    recorded = read_dataset(shared_data / "runs/gpt-4o-2024-11-20.csv.gz").questions[0]
    assert set(recorded.metadata) == {"predicted_answer", "grade"}


def test_a_file_that_is_no_dataset_is_refused_in_one_line(shared_data: Path) -> None:
    """A JSON object without questions and a table without a gold say what they have, in one line."""
    with pytest.raises(DatasetError, match="'run_metadata', 'systems'"):
        read_dataset(next((shared_data / "runs").glob("*_n30.json")))
    with pytest.raises(DatasetError, match=r"the gold answer; found 'id', 'Question', .* accepted, any case"):
        read_dataset(shared_data / "labels/NQ301_human.tsv")


def test_the_shipped_sample_is_small_and_covers_the_benchmark() -> None:
    """`sample` has 60 questions, all ten topics and five types, short golds, no twin, and a source each."""
    dataset = load_dataset("sample")
    assert dataset.name == "sample"
    topics = "Science and technology, Politics, Art, Geography, Sports, Music, TV shows, History, Video games, Other"
    assert Counter(question.topic for question in dataset) == dict.fromkeys(topics.split(", "), 6)
    assert {question.answer_type for question in dataset} == {"Date", "Person", "Other", "Number", "Place"}
    assert len({question.question_hash for question in dataset}) == 60
    assert all(len(question.answer) < 30 for question in dataset)
    assert all(question.metadata["urls"][0].startswith("https://en.wikipedia.org/wiki/") for question in dataset)


def test_the_shipped_sample_takes_nothing_from_the_official_set(shared_data: Path) -> None:
    """No question of the sample is a question of the official set."""
    official = {question.question_hash for question in read_dataset(shared_data / "simple_qa_test_set.csv")}
    assert official.isdisjoint(question.question_hash for question in load_dataset("sample"))


def test_load_dataset_counts_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative source is looked for in the current folder, as text or as a path."""
    write(tmp_path / "mine.csv", "problem,answer\nWho?,Me\n")
    monkeypatch.chdir(tmp_path)
    assert load_dataset("mine.csv") == load_dataset(Path("mine.csv")) == load_dataset(tmp_path / "mine.csv")


@pytest.mark.parametrize(
    "header",
    ["problem,answer", "question,target", "Question,Answer", "INPUT,ideal", " problem , gold", "question,true_answer"],
)
def test_every_alias_of_a_header_is_known(tmp_path: Path, header: str) -> None:
    """Question and gold are found under each of their names, in any case and with blanks around."""
    question = only(of_csv(tmp_path, f"{header}\nWho?,Me\n"))
    assert (question.problem, question.answer) == ("Who?", "Me")


@pytest.mark.parametrize(
    ("header", "gold"),
    [("problem,target,predicted_answer,grade", "b"), ("question,gold,answer", "c"), ("ideal,problem,true_answer", "c")],
)
def test_of_several_gold_columns_the_order_is_fixed(tmp_path: Path, header: str, gold: str) -> None:
    """With several aliases present `answer` wins, then `target`, `gold`, `true_answer`, `ideal`, in any place."""
    row = ",".join("abcd"[: header.count(",") + 1])
    assert only(of_csv(tmp_path, f"{header}\n{row}\n")).answer == gold


def test_an_unknown_header_is_one_error(tmp_path: Path) -> None:
    """A header without a question column gives one error with what was found and what is accepted."""
    with pytest.raises(DatasetError) as caught:
        of_csv(tmp_path, "frage,antwort\nWer?,Ich\n")
    assert str(caught.value) == (
        "questions.csv, row 1: no column holds the question; found 'frage', 'antwort'; accepted, any case: "
        "problem, question, input for the question and answer, target, gold, true_answer, ideal for the gold answer"
    )


@pytest.mark.parametrize("text", ["None", "0042", "1950", "1.10", "nan", "TRUE", "1e3"])
def test_text_stays_text(tmp_path: Path, text: str) -> None:
    """A gold that looks like a number or a missing value is the text that stands in the file."""
    question = only(of_csv(tmp_path, f"problem,answer,extra\n{text},{text},{text}\n"))
    assert (question.problem, question.answer, question.metadata["extra"]) == (text, text, text)


@pytest.mark.parametrize(
    ("written", "gold"),
    [("1950", "1950"), ("1.10", "1.10"), ("2.5", "2.5"), ("1e3", "1e3"), ("true", "true"), ('" x "', "x"), ("0", "0")],
)
def test_a_json_number_is_its_own_text(tmp_path: Path, written: str, gold: str) -> None:
    """A number or boolean as gold in JSON becomes the text that the file has."""
    path = write(tmp_path / "a.jsonl", f'{{"problem": "Who?", "answer": {written}}}\n')
    assert only(read_dataset(path)).answer == gold


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("null", "is empty"),
        ('""', "is empty"),
        ("[]", "is empty"),
        ("NaN", "is empty"),
        ('{"a": 1}', "holds an object"),
    ],
)
def test_a_missing_gold_is_a_bad_row(tmp_path: Path, cell: str, found: str) -> None:
    """A gold that is null, blank or no text is an error with file, line and what was wanted."""
    path = write(
        tmp_path / "a.jsonl", f'{{"problem": "Who?", "answer": "I"}}\n\n{{"problem": "W", "answer": {cell}}}\n'
    )
    with pytest.raises(DatasetError) as caught:
        read_dataset(path)
    assert str(caught.value) == f"a.jsonl, line 3: the cell 'answer' {found}; a gold answer was wanted"


def test_a_blank_question_is_a_bad_row(tmp_path: Path) -> None:
    """A question of blanks only is an error that counts data rows, blank lines left out."""
    with pytest.raises(
        DatasetError, match=r"^questions.csv, row 2: the cell 'problem' is empty; a question was wanted$"
    ):
        of_csv(tmp_path, "problem,answer\n\nWho?,Me\n \n  ,x\n")


def test_the_question_is_kept_byte_for_byte(tmp_path: Path) -> None:
    """Blanks, line ends, NUL and odd characters of a question stay; the gold loses its outer blanks only."""
    problem, answer = " Who?\r\n\u2028 \0 {question} ", "\t a \n b\n"
    question = only(of_json(tmp_path, {"problem": problem, "answer": answer}))
    assert (question.problem, question.answer) == (problem, "a \n b")


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    """Half a surrogate pair, escaped in JSON or in a Python literal, becomes U+FFFD; a whole pair stays."""
    text = r'{"problem": "half \ud83c, whole \ud83d\ude00?", "answer": "\udc00", "k": ["\ud800"], "topic": "\ud83c"}'
    question = only(read_dataset(write(tmp_path / "a.jsonl", text)))
    assert (question.problem, question.answer, question.topic) == ("half \ufffd, whole 😀?", "\ufffd", "\ufffd")
    assert question.metadata["k"] == ["\ufffd"]
    literal = only(of_csv(tmp_path, "problem,answer,metadata\nWho?,Me,{'topic': '\\ud83c'}\n"))
    assert literal.topic == "\ufffd"


@pytest.mark.parametrize("cell", ["{'topic': 'Art', 'answer_type': None, 'n': 1}", '{"topic": "Art", "n": 1}'])
def test_metadata_is_json_or_a_python_literal(tmp_path: Path, cell: str) -> None:
    """Topic and answer type are lifted out of a metadata cell in either notation; the rest stays."""
    quoted = cell.replace('"', '""')
    question = only(of_csv(tmp_path, f'metadata,problem,answer\n"{quoted}",Who?,Me\n'))
    assert (question.topic, question.answer_type, dict(question.metadata)) == ("Art", None, {"n": 1})


def test_metadata_may_be_missing_or_odd_inside(tmp_path: Path) -> None:
    """An empty metadata cell is no error, and broken URLs or escapes inside one do not matter."""
    urls = ["https://a.org/x,\\nhttps://b.org/y", "\\d"]
    question = only(of_csv(tmp_path, f"metadata,problem,answer\n\"{{'urls': {urls}}}\",Who?,Me\n"))
    assert question.metadata["urls"] == urls
    assert only(of_csv(tmp_path, "metadata,problem,answer\n\"{'a': '\\d'}\",Who?,Me\n")).metadata == {"a": "\\d"}
    assert only(of_csv(tmp_path, "metadata,problem,answer\n  ,Who?,Me\n")).metadata == {}


@pytest.mark.parametrize(
    ("cell", "found"),
    [("topic=Art", "neither JSON nor"), ("[1]", "an array found"), ("__import__('os')", "neither JSON nor")],
)
def test_metadata_that_is_no_object_is_a_bad_row(tmp_path: Path, cell: str, found: str) -> None:
    """A metadata cell that is no object, or is code, is a named error and is never run."""
    with pytest.raises(DatasetError, match=rf"^questions.csv, row 1: the cell 'metadata': {found}"):
        of_csv(tmp_path, f'metadata,problem,answer\n"{cell}",Who?,Me\n')


def test_columns_come_before_metadata(tmp_path: Path) -> None:
    """A topic column wins over the metadata's topic, unless it is blank."""
    text = "topic,metadata,problem,answer\nMusic,{'topic': 'Art'},Who?,Me\n ,{'topic': 'Art'},What?,It\n"
    assert [question.topic for question in of_csv(tmp_path, text)] == ["Music", "Art"]


def test_flowcraft_questions_load(tmp_path: Path) -> None:
    """The fields of a FlowCraft question are the fields of ours, id and metadata included."""
    row = {
        "id": "q0042",
        "problem": "Who?",
        "answer": "Me",
        "topic": "Art",
        "answer_type": "Person",
        "metadata": {"a": 1},
    }
    question = only(of_json(tmp_path, row))
    assert (question.id, question.topic, question.answer_type, question.metadata) == (
        "q0042",
        "Art",
        "Person",
        {"a": 1},
    )


def test_openai_evals_samples_load(tmp_path: Path) -> None:
    """Of chat messages the user's last one is the question, of several golds the first; all are kept."""
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": [{"type": "text", "text": "Two?"}]},
    ]
    chat, told, plain = of_json(
        tmp_path,
        {"input": messages, "ideal": ["2", "two"]},
        {"input": [{"role": "system", "content": "Three?"}], "ideal": "3"},
        {"input": "Four?", "ideal": [4]},
    )
    assert (chat.problem, chat.answer) == ("Two?", "2")
    assert (chat.metadata["input"], chat.metadata["ideal"]) == (messages, ["2", "two"])
    assert (told.problem, told.answer) == ("Three?", "3")
    assert (plain.problem, plain.answer, plain.metadata) == ("Four?", "4", {"ideal": [4]})


def test_ids_are_safe_and_unique(tmp_path: Path) -> None:
    """Own ids are made of ASCII letters, digits, `_` and `-`; taken ones get a suffix; blank ones the row's number."""
    own: list[Any] = ["a::b [c]/d\0", "x", "x", "x-2", "", None, 7, "题1", "q0005"]
    dataset = of_json(tmp_path, *({"id": id_, "problem": f"Q{n}?", "answer": "A"} for n, id_ in enumerate(own)))
    assert [question.id for question in dataset] == [
        "a__b__c__d_", "x", "x-2", "x-2-2", "q0005", "q0006", "7", "_1", "q0005-2",
    ]  # fmt: skip


def test_twins_get_two_ids_and_one_warning(tmp_path: Path) -> None:
    """The same row twice is two questions with different ids and one warning; another gold is no twin."""
    with pytest.warns(DatasetWarning) as caught:
        dataset = of_csv(tmp_path, "problem,answer\nWho?,Me\nWhat?,It\nWho?, Me\nWho?,You\nWho?,Me\n")
    assert [question.id for question in dataset] == ["q0001", "q0002", "q0003", "q0004", "q0005"]
    (warning,) = caught
    assert str(warning.message) == (
        "questions.csv, row 3: the same question and gold as in row 1; twins in all: 2; "
        "each is asked, under an id of its own"
    )


def test_no_rows_is_an_error(tmp_path: Path) -> None:
    """An empty file, a header alone and an empty list are errors, not datasets of nothing."""
    for name, text in (
        ("a.csv", ""),
        ("b.csv", "problem,answer\n\n"),
        ("c.jsonl", "\n"),
        ("d.json", "[]"),
        ("e.json", ""),
    ):
        with pytest.raises(DatasetError, match=f"^{name}: the file holds no questions$"):
            read_dataset(write(tmp_path / name, text))
    with pytest.raises(DatasetError, match="holds no questions"):
        read_dataset(write(tmp_path / "f.json", '{"data": []}'))


def test_loading_is_linear(tmp_path: Path) -> None:
    """20,000 rows with Python-literal metadata and equal ids load in seconds: no step grows with the square."""
    rows = (f"same,\"{{'topic': 'Art', 'urls': ['https://a.org/{n}']}}\",Question {n}?,A" for n in range(20_000))
    path = write(tmp_path / "big.csv", "id,metadata,problem,answer\n" + "\n".join(rows))
    began = time.perf_counter()
    dataset = read_dataset(path)
    assert len({question.id for question in dataset}) == 20_000
    assert time.perf_counter() - began < 10


def questions(count: int, topics: tuple[str | None, ...] = ("Art", "TV shows")) -> Dataset:
    rows = (Question(f"q{n:04d}", f"{n}?", "A", topics[n % len(topics)]) for n in range(1, count + 1))
    return Dataset("some", tuple(rows), "hash")


def ids(dataset: Dataset) -> list[int]:
    return [int(question.id[1:]) for question in dataset]


def test_select_gives_all_by_default() -> None:
    """Without wishes the population is the dataset, under its name and hash."""
    assert select(questions(5)) == questions(5)


def test_limit_and_sample_beyond_the_rows_give_all() -> None:
    """A limit or sample larger than the dataset gives all of it, in dataset order."""
    assert ids(select(questions(5), limit=9, sample=9)) == [1, 2, 3, 4, 5]


def test_a_sample_is_seeded_and_in_dataset_order() -> None:
    """The same seed gives the same rows everywhere, in dataset order; another seed gives others."""
    assert ids(select(questions(100), sample=5)) == ids(select(questions(100), sample=5, seed=0)) == [6, 34, 50, 54, 98]
    assert ids(select(questions(100), sample=5, seed=1)) != ids(select(questions(100), sample=5))


def test_shards_are_disjoint_and_whole() -> None:
    """The shards I/N of a population share no row and give it back together."""
    shards = [ids(select(questions(10), shard=(part, 3))) for part in (1, 2, 3)]
    assert shards == [[1, 4, 7, 10], [2, 5, 8], [3, 6, 9]]


def test_wishes_apply_in_their_order() -> None:
    """Topics come first, then the sample, then the limit, then the shard."""
    dataset = questions(100)
    art = select(dataset, topics=["art"])
    sampled = select(art, sample=10)
    assert select(dataset, topics=["art"], sample=10, limit=6, shard=(2, 2)) == select(
        select(sampled, limit=6), shard=(2, 2)
    )
    assert len(select(dataset, topics=["art"], sample=10, limit=6, shard=(2, 2))) == 3


def test_topics_are_exact_in_any_case() -> None:
    """A topic is its whole name in any case, several add up, and rows without one are `(unspecified)`."""
    dataset = questions(6, ("Art", "art history", None))
    assert ids(select(dataset, topics=["ART "])) == [3, 6]
    assert ids(select(dataset, topics=["Art", "(unspecified)"])) == [2, 3, 5, 6]


def test_an_unknown_topic_names_those_there_are() -> None:
    """A topic that the dataset lacks is an error with the nearest one and the list."""
    with pytest.raises(DatasetError) as caught:
        select(questions(4), topics=["TV show"])
    assert str(caught.value) == "some has no topic 'TV show' (did you mean 'TV shows'?); it has 'Art', 'TV shows'"


@pytest.mark.parametrize("wish", [{"shard": (0, 2)}, {"shard": (3, 2)}, {"limit": -1}, {"sample": -1}])
def test_impossible_wishes_are_refused(wish: dict[str, Any]) -> None:
    """A shard outside its count and negative numbers are errors."""
    with pytest.raises(DatasetError, match=r"found, .* wanted"):
        select(questions(4), **wish)


@pytest.mark.parametrize(
    ("label", "keyword"),
    [
        ("TV shows", "tv_shows"),
        ("中国文化", "中国文化"),
        ("Science and technology", "science_and_technology"),
        ("  R&B / Soul! ", "r_b_soul"),
        ("Cafe\u0301", "caf\u00e9"),
        ("生活、艺术与文化", "生活_艺术与文化"),
        ("?", ""),
    ],
)
def test_slug(label: str, keyword: str) -> None:
    """A label becomes one lower-case word for `-k`, letters of all scripts kept."""
    assert slug(label) == keyword


def test_no_warning_without_twins(tmp_path: Path) -> None:
    """A clean dataset loads without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of_csv(tmp_path, "problem,answer\nWho?,Me\n")
