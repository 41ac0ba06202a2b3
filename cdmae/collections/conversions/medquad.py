"""MedQuAD (Ben Abacha and Demner-Fushman 2019) with the questions of TREC LiveQA-Med 2017.

- Passages are the distinct answers of the nine sources that have answers.
- Queries are the questions; questions that differ only in case and punctuation are one query, and
  all their answers are relevant to it. Test questions are omitted.
- dev has every tenth document, by the SHA-256 of its ``folder/file.xml``, and all questions in
  these documents.
- test has NLM's one-sentence summaries of consumers' questions, test_long the subject and message
  as they were sent. Judgments name answers of another edition, so they are matched by text. If a
  pair is listed twice, the higher grade counts.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

from typer import Option

from cdmae.collections.conversions import beir_files
from cdmae.collections.conversions.beir_files import Files, Passage, collapsed
from cdmae.errors import InputError

JUDGED = "QA-TestSet-LiveQA-Med-Qrels-2479-Answers"
GRADES = f"{JUDGED}/All-qrels_LiveQAMed2017-TestQuestions_2479_Judged-Answers.txt"
ANSWERS = f"{JUDGED}/All-2479-Answers-retrieved-from-MedQuAD.csv"
TEST = "TestDataset/TREC-2017-LiveQA-Medical-Test-Questions-w-summaries.xml"
DIGESTS = {
    "corpus.jsonl": "14fa242738ec7b4e04ebc7116d81f4c02da18096a5421dbf1228e0cef5db7176",
    "queries.jsonl": "5967048d89222da150681dadc31edb70d7b84a84d366af44e8477ce60c0205ab",
    "qrels/train.tsv": "2b40ef302ae654290c43177d563366489d9b4be3f96ed1228acdb234c5e7bd68",
    "qrels/dev.tsv": "bd05f0bc5bf03eb6eb03d036ab8333ddbac2cdfb12e1e5d2782cc6898daba266",
    "qrels/test.tsv": "4a238df2abcc508c1f70cffa5dd7833ff11c3999d0776220cfee42679eae9725",
    "qrels/test_long.tsv": "f3d3d219a4fd5886f29d1cabdb37c549d60bd9e2e53272bdd1b41060d60e4ae6",
}


@dataclass(frozen=True)
class Pair:
    """A question and its answer; file: ``folder/file.xml``."""

    file: str
    source: str
    number: str
    question: str
    answer: str

    def name(self, part: str) -> str:
        """Return the id of the question (Q) or of the answer (Sec)."""
        return f"{self.source}_{Path(self.file).stem}_{part}{self.number}"

    @property
    def is_dev(self) -> bool:
        """Return whether its document is in dev."""
        return int(hashlib.sha256(self.file.encode()).hexdigest()[:8], 16) % 10 == 0


def main(
    medquad: Annotated[Path, Option(help="a checkout of abachaa/MedQuAD")],
    liveqa: Annotated[Path, Option(help="a checkout of abachaa/LiveQA_MedicalTask_TREC2017")],
    output: Annotated[Path, Option(help="a folder, such as data/medquad")],
    unchecked: Annotated[bool, Option("--unchecked", help="convert another version, too")] = False,
) -> None:
    """Convert MedQuAD and LiveQA-Med."""
    beir_files.write(convert(medquad, liveqa), output, DIGESTS, unchecked=unchecked)


def convert(medquad: Path, liveqa: Path) -> Files:
    """Read the two checkouts."""
    pairs = _pairs(medquad)
    passage_of: dict[str, str] = {}  # the id of each answer's text
    for pair in pairs:
        passage_of.setdefault(pair.answer, pair.name("Sec"))
    asked = _test_questions(liveqa / TEST)
    judged = _judgments(medquad / f"{JUDGED}.zip", passage_of)
    tested = {_key(asked[name]) for name, _, _ in judged}
    questions: dict[str, list[Pair]] = {}
    for pair in pairs:
        if _key(pair.question) not in tested:
            questions.setdefault(_key(pair.question), []).append(pair)
    qrels: dict[str, set[tuple[str, str, int]]] = {"train": set(), "dev": set()}
    queries = {}
    for same in questions.values():
        name = same[0].name("Q")
        queries[name] = same[0].question
        split = "dev" if any(pair.is_dev for pair in same) else "train"
        qrels[split] |= {(name, passage_of[pair.answer], 1) for pair in same}
    qrels["test"] = judged
    qrels["test_long"] = {(f"{name}_long", passage, grade) for name, passage, grade in judged}
    for name, _, _ in judged:
        queries[name] = asked[name]
        queries[f"{name}_long"] = asked[f"{name}_long"]
    corpus = sorted(
        (Passage(name, text) for text, name in passage_of.items()), key=lambda each: each.name
    )
    return Files(
        corpus,
        dict(sorted(queries.items())),
        {split: sorted(rows) for split, rows in qrels.items()},
    )


def _pairs(medquad: Path) -> list[Pair]:
    """Read the pairs with an answer, in the order of folders, files and pairs."""
    pairs = []
    for path in sorted(medquad.glob("*_QA*/*.xml")):
        document = ElementTree.parse(path).getroot()  # noqa: S314 (a file that the user names)
        for pair in document.iter("QAPair"):
            answer = collapsed(_text(pair.find("Answer")))
            if answer:
                question = collapsed(_text(pair.find("Question")))
                file = f"{path.parent.name}/{path.name}"
                pairs.append(
                    Pair(file, document.get("source", ""), pair.get("pid", ""), question, answer)
                )
    if not pairs:
        raise InputError(f"{medquad} has no questions; allowed: a checkout of abachaa/MedQuAD")
    return pairs


def _test_questions(path: Path) -> dict[str, str]:
    """Return each test question by its id, its summary and, with _long, its message."""
    asked = {}
    for question in ElementTree.parse(path).getroot().iter("NLM-QUESTION"):  # noqa: S314
        name = question.get("qid", "")
        sent = question.find("Original-Question")
        parts = [] if sent is None else [_text(sent.find(key)) for key in ("SUBJECT", "MESSAGE")]
        asked[name] = collapsed(_text(question.find("NLM-Summary")))
        asked[f"{name}_long"] = collapsed(" ".join(parts))
    return asked


def _judgments(path: Path, passage_of: dict[str, str]) -> set[tuple[str, str, int]]:
    """Return the highest grade, 0 to 3, of each judged question and passage."""
    with zipfile.ZipFile(path) as archive:
        grades = archive.read(GRADES).decode("utf-8")
        answers = archive.read(ANSWERS).decode("utf-8-sig")
    passages = {}
    for row in csv.DictReader(io.StringIO(answers, newline="")):
        answer = re.search(r"^Answer:(.*)", row["Answer"], flags=re.MULTILINE | re.DOTALL)
        text = collapsed(answer[1]) if answer else ""
        # the list puts a parenthesis behind some answers
        passages[row["AnswerID"]] = passage_of.get(text) or passage_of.get(text.removesuffix(")"))
    best: dict[tuple[str, str], int] = {}
    for line in grades.splitlines():
        question, grade, answer_file = line.split()
        passage = passages.get(answer_file)
        if passage:
            key = (f"TQ{question}", passage)
            best[key] = max(best.get(key, 0), int(grade[0]) - 1)
    return {(*key, grade) for key, grade in best.items()}


def _key(question: str) -> str:
    """Return a question without case and punctuation."""
    return re.sub(r"[\W_]+", " ", question.lower()).strip()


def _text(element: ElementTree.Element | None) -> str:
    return "" if element is None else "".join(element.itertext())
