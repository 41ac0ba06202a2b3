"""Published files become the collections that docs/results.md measures; here with made samples."""

import gzip
import json
import subprocess
import sys
import zipfile

import pytest

from cdmae.collections.conversions import beir_files, boolq, cisi, medquad
from cdmae.collections.sources.beir import Settings
from cdmae.errors import InputError

QUESTIONS = [
    ("is a cat a pet", "Cat", "A cat  is\na pet."),
    ("do cats sleep", "Cat", "Cats sleep."),
    ("is a dog a pet", "Dog", "A dog is a pet."),
    ("is a pet a cat", "Pet", "A cat is a pet."),
    ("is a cow a pet", "Cow", "A cow is not."),
]


def test_boolq_divides_pages_and_merges_equal_paragraphs(tmp_path):
    path = tmp_path / "dev.jsonl"
    lines = [dict(zip(("question", "title", "passage"), row, strict=True)) for row in QUESTIONS]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    files = boolq.convert(path, most=3)
    names = [passage.name for passage in files.corpus]
    assert names == ["p0001", "p0002", "p0003", "p0005"]
    assert files.corpus[0].text == "A cat is a pet."
    split_of = {query: split for split, rows in files.qrels.items() for query, _, _ in rows}
    assert len(split_of) == 5
    # Cat and Pet share a paragraph, so their three questions stay together
    assert split_of["q0001"] == split_of["q0002"] == split_of["q0004"]
    assert max(len(files.qrels[split]) for split in ("test", "dev")) <= 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"question": "a", "title": "b"}\n', "line 1: it is not a JSON object with the texts"),
        (b'{"question": 1, "title": "b", "passage": []}\n', "line 1: it is not a JSON object"),
        (b"[1]\n", "line 1: it is not a JSON object"),
        (b"\x00\xff", "line 1 is not UTF-8"),
    ],
)
def test_a_file_that_is_not_boolq_s_is_refused_with_its_line(tmp_path, content, message):
    path = tmp_path / "dev.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        boolq.convert(path)


def test_cisi_reads_titles_and_texts_of_smart(tmp_path):
    (tmp_path / "CISI.ALL").write_text(
        ".I 1\n.T\nA Title\n.A\nSomebody\n.W\n  a text\nin two lines\n.X\n1\t5\t1\n.I 2\n.T \nB\n.W\nb\n"
    )
    (tmp_path / "CISI.QRY").write_text(".I 1\n.W\nwhat?\n.I 2\n.T\nOn\n.W\nwhich\n.B\n(1980)\n")
    (tmp_path / "CISI.REL").write_text("     1     2\t0\t0.000000\n")
    files = cisi.convert(tmp_path)
    assert [(each.name, each.title, each.text) for each in files.corpus] == [
        ("1", "A Title", "a text in two lines"),
        ("2", "B", "b"),
    ]
    assert files.queries == {"1": "what?", "2": "On which"}
    assert files.qrels == {"test": [("1", "2", 1)]}


DOCUMENT = """<Document source="GARD"><QAPairs>
<QAPair pid="1"><Question>What is {0} ?</Question><Answer>{0} is   rare.</Answer></QAPair>
<QAPair pid="2"><Question>Who has it?</Question><Answer>Nobody.</Answer></QAPair>
<QAPair pid="3"><Question>Unanswered?</Question><Answer></Answer></QAPair>
</QAPairs></Document>"""
ASKED = """<Test><NLM-QUESTION qid="TQ7"><Original-Question><SUBJECT>x</SUBJECT>
<MESSAGE>tell me</MESSAGE></Original-Question><NLM-Summary>What is A?</NLM-Summary>
</NLM-QUESTION><NLM-QUESTION qid="TQ8"><NLM-Summary>unjudged</NLM-Summary></NLM-QUESTION></Test>"""


@pytest.fixture
def checkouts(tmp_path):
    """The two checkouts that MedQuAD is made from, with three documents."""
    folder = tmp_path / "medquad/2_GARD_QA"
    folder.mkdir(parents=True)
    for number, name in enumerate("ABC", 1):
        (folder / f"000{number}.xml").write_text(DOCUMENT.format(name))
    with zipfile.ZipFile(tmp_path / f"medquad/{medquad.JUDGED}.zip", "w") as archive:
        grades = "7 2-Related X_1.txt\n7 4-Excellent X_1.txt\n7 1-Incorrect X_2.txt\n"
        archive.writestr(medquad.GRADES, grades)
        # the list names answers of another edition, and closes a parenthesis that is not open
        rows = 'AnswerID,Answer\r\nX_1.txt,"Question: ?\nAnswer: A is rare.)"\r\n'
        archive.writestr(medquad.ANSWERS, rows + 'X_2.txt,"Answer: lost"\r\n')
    test = tmp_path / "liveqa" / medquad.TEST
    test.parent.mkdir(parents=True)
    test.write_text(ASKED)
    return tmp_path / "medquad", tmp_path / "liveqa"


def test_medquad_matches_judgments_by_text_and_leaves_out_test_questions(checkouts):
    files = medquad.convert(*checkouts)
    assert [each.name for each in files.corpus] == [
        "GARD_0001_Sec1",
        "GARD_0001_Sec2",
        "GARD_0002_Sec1",
        "GARD_0003_Sec1",
    ]
    assert files.qrels["test"] == [("TQ7", "GARD_0001_Sec1", 3)]
    assert files.queries["TQ7_long"] == "x tell me" and "TQ8" not in files.queries
    assert "GARD_0001_Q1" not in files.queries  # it asks what TQ7 asks
    learnt = [*files.qrels["train"], *files.qrels["dev"]]
    assert {query for query, _, _ in learnt} == {"GARD_0001_Q2", "GARD_0002_Q1", "GARD_0003_Q1"}
    assert ("GARD_0001_Q2", "GARD_0001_Sec2", 1) in learnt


def test_a_command_writes_a_folder_that_the_source_reads_and_refuses_another_version(
    checkouts, tmp_path
):
    command = [sys.executable, "-m", "cdmae.collections.conversions", "medquad"]
    command += ["--medquad", checkouts[0], "--liveqa", checkouts[1], "--output", tmp_path / "to"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "corpus.jsonl would have the SHA-256" in refused.stderr
    assert not (tmp_path / "to").exists()
    subprocess.run([*command, "--unchecked"], check=True)
    assert Settings(path=str(tmp_path / "to")).judged()["test"]
    text = gzip.decompress((tmp_path / "to/corpus.jsonl.gz").read_bytes()).decode()
    assert text == medquad.convert(*checkouts).contents()[beir_files.CORPUS]
