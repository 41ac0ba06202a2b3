"""Scripts: words, sentences and languages; BM25, vocabularies and made queries in each."""

import pyarrow as pa
import pytest
from small_collections import stored

from cdmae.collections.documents import blocks
from cdmae.collections.sources import pseudo, text
from cdmae.languages import scripts
from cdmae.retrieval import bm25
from cdmae.tokens import tokenise
from cdmae.tokens.vocabulary import Vocabulary

SENTENCES = {
    "ar": ["مرشح المضخة متسخ جدا.", "اغسله بماء فاتر كل ثلاثة أشهر.", "من اخترع المجهر في القرن الماضي؟",
           "لا تضع الساعة في الشمس.", "ضمان الطابعة أربعة وعشرون شهرا.", "يجفف الغطاء على الطاولة قبل إعادته."],
    "de": ["Der Filter der Pumpe ist schmutzig.", "Über Nacht trocknet er an der Luft.", "Wer hat das Mikroskop erfunden?",
           "Die Uhr ist nicht für die Sonne gebaut.", "Der Drucker hat eine Garantie.", "Das Fahrrad steht mit dem Traktor im Hof."],
    "en": ["The filter of the pump is dirty.", "It dries in the air for a night.", "Who invented the microscope?",
           "The clock is not for the sun.", "The printer has a warranty.", "The bicycle is in the yard with the tractor."],
    "fr": ["Le filtre de la pompe est sale.", "Évitez le savon et les brosses dures.", "Qui a inventé le microscope des musées ?",
           "La pendule est dans une boîte.", "Une garantie couvre les imprimantes.", "Le vélo est dans la cour pour les enfants."],
    "hi": ["पंप का फ़िल्टर गंदा है।", "इसे हर तीन महीने में पानी से धोएँ।", "सूक्ष्मदर्शी का आविष्कार किसने किया?",
           "घड़ी को धूप में न रखें।", "प्रिंटर की वारंटी दो साल की है।", "साइकिल आँगन में खड़ी है।"],
    "ja": ["ポンプのフィルターが汚れています。", "三か月ごとにぬるま湯で洗ってください。", "顕微鏡を発明したのは誰ですか？",
           "時計を日光に当てないでください。", "プリンターの保証は二年間です。", "自転車は庭に置いてあります。"],
    "ru": ["Фильтр насоса загрязнён.", "Промойте его тёплой водой и не трите.", "Кто изобрёл микроскоп в прошлом веке?",
           "Часы не стоит держать на солнце.", "На принтер даётся гарантия.", "Велосипед стоит во дворе и с трактором."],
    "th": ["ไส้กรองของปั๊มน้ำสกปรกมาก", "ล้างด้วยน้ำอุ่นทุกสามเดือน", "ใครประดิษฐ์กล้องจุลทรรศน์",
           "อย่าวางนาฬิกาไว้กลางแดด", "เครื่องพิมพ์มีประกันสองปี", "จักรยานจอดอยู่ในสวนหลังบ้าน"],
    "zh": ["水泵的过滤网脏了。", "请每三个月用温水清洗一次！", "是谁发明了显微镜呢？",
           "不要把钟表放在阳光下。", "打印机的保修期是两年。", "自行车停在院子里面。"],
}  # fmt: skip
UNSPACED = ("ja", "th", "zh")


def joined(language):
    return ("" if language in ("ja", "zh") else " ").join(SENTENCES[language])


@pytest.fixture(params=SENTENCES)
def language(request):
    return request.param


def test_a_language_is_recognised(language):
    assert scripts.language_of(SENTENCES[language]) == language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Площа міста велика. Ці відомості є в довіднику.", "uk"),
        ("Филтърът на помпата е мръсен.", scripts.WORDS),  # Bulgarian
        ("Filtr čerpadla je špinavý, umyjte ho teplou vodou.", scripts.WORDS),  # Czech
        ("Ljudi se rađaju slobodni i jednaki, i žive i rade na čast, i na više.", scripts.WORDS),
        ("Kõik inimesed sünnivad vabana ja võrdsena, ja see on meie õigus.", scripts.WORDS),
        ("Funda de silicona para teléfono, té de jazmín, caja de cartón pequeña", scripts.WORDS),
        ("Бардык адамдар өз беделинде жана укуктарында эркин болуп жаралат.", scripts.WORDS),
        ("تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں", scripts.WORDS),
        ("x86_64 0xff", "en"),
    ],
)
def test_a_language_that_lucene_does_not_know_is_read_by_words(text, expected):
    assert scripts.language_of([text, ""]) == expected


@pytest.mark.parametrize(
    ("language", "first", "rest"),
    [
        ("en", "Use e.g. Water.", "Dry it."),
        ("en", "See part 3.", "2 pages are left."),
        ("de", "Das war im Jahr 1945.", "Danach kam der Frieden."),
        ("de", "Dr. Müller und (Prof. Meier) lehren z. B. Chemie, s. Bd. II.", "Und Physik."),
        ("fr", "Il y en a 12.", "Les autres sont partis."),
        ("ru", "М. Горький и проф. Иванов жили на ул. Ленина.", "Они писали."),
        ("hi", "डॉ. शर्मा यहाँ आए।", "वे बैठे।"),
        ("zh", "他说：「洗！」", "然后走。"),
    ],
)
def test_a_sentence_goes_on_after_an_abbreviation_and_closes_its_quotation(language, first, rest):
    between = "" if language == "zh" else " "
    assert scripts.first_sentence(f"{first}{between}{rest}".strip(), language) == first


def test_passages_and_made_queries_have_words_of_their_script(language):
    """Words are of similar length in every language: neither a character nor a clause is one."""
    whole = joined(language)
    (whole_block,) = blocks(whole, ".txt")
    cut = [passage for _, passage in text.passages(iter([whole_block]), 10)]
    assert 20 <= len(scripts.words(whole)) <= 60
    assert len(cut) > 2
    assert all(len(scripts.words(passage)) <= 10 for passage in cut)
    assert "".join(cut).replace(" ", "") == whole.replace(" ", "")
    query, _, rest = pseudo.divided("p1", "", whole, "first_sentence", language)
    assert query == SENTENCES[language][0]
    assert query not in rest
    query, _, rest = pseudo.divided("p1", "", whole, "span")
    assert pseudo.SHORTEST_SPAN <= len(scripts.words(query)) <= pseudo.LONGEST_SPAN + 1
    assert len(query + rest) < len(whole) + 3


def test_a_line_break_is_no_space_in_scripts_without_spaces():
    lines = "水泵的过\n滤网脏了。\n\nThe filter\nis dirty."
    expected = ["水泵的过滤网脏了。", "The filter is dirty."]
    assert [block.text for block in blocks(lines, ".txt")] == expected


def test_bm25_finds_a_passage_by_some_of_its_words(language, tmp_path):
    """With the language of the passages, which it recognises; Thai has no hit as English."""
    sentences = SENTENCES[language]
    stored(tmp_path / "c", sentences)
    bm25.build(tmp_path / "c", tmp_path / "index")
    step = 8 if language in UNSPACED else 16
    asked = [sentence[:step] for sentence in sentences]
    run = bm25.search(tmp_path / "index", asked, 3)
    assert [run.ranked(row)[0][0] for row in range(len(asked))] == list(range(len(asked)))
    if language == "th":
        bm25.build(tmp_path / "c", tmp_path / "english", language="en")
        assert not len(bm25.search(tmp_path / "english", asked, 3).passages)


def test_pairs_of_characters_keep_the_words_of_other_scripts():
    found = scripts.pairs_of_characters("水泵 USB-C ｱﾝﾌﾟ水 1")
    assert found == "水泵 usb c アン ンプ プ水 1"


def test_a_vocabulary_covers_the_letters_and_keeps_their_signs(language, tmp_path):
    texts = SENTENCES[language] * 3
    tokenizer = tokenise.train_tokenizer(texts, 400)
    tokenizer.save_pretrained(tmp_path)
    spelt = tokenizer.backend_tokenizer.normalizer.normalize_str(texts[0])
    assert spelt.replace(" ", "") == texts[0].lower().replace(" ", "")
    vocabulary = Vocabulary.read(tmp_path)
    found = tokenise.Tokeniser(tmp_path).tokens(pa.table({"title": [""], "text": texts[:1]}))
    assert vocabulary.unknown_id not in found.ids
    long = "".join(texts)  # BERT's tokenizer would read a word of over 100 letters as unknown
    if language == "th":
        assert len(found.ids) > 2, "a clause is not a single word-piece"
        assert tokenizer.unk_token not in tokenise.load_tokenizer(tmp_path).tokenize(long)
    if language in UNSPACED:
        assert vocabulary.word_starts[found.ids].all()


@pytest.mark.parametrize(("strips", "spelt"), [(True, "ano"), (False, "año")])
def test_accents_of_latin_texts_follow_the_setting(strips, spelt):
    tokenizer = tokenise.train_tokenizer(["el año de la niña"] * 3, 100, strips)
    assert tokenizer.backend_tokenizer.normalizer.normalize_str("año") == spelt


def test_letters_beyond_a_thousand_are_learnt_by_coverage(tmp_path):
    """Of 2,600 characters, rarer ones than the first 1,000 made 12 % of the word-pieces unknown."""
    letters = [chr(0x4E00 + row) for row in range(2600)]
    texts = [letter * max(1, 2600 // (row + 1)) for row, letter in enumerate(letters)]
    pieces = tokenise.train_pieces(texts, 8192)
    assert len(set(letters) & pieces.keys()) > 2500
    tokenise.train_tokenizer(["水泵"] * 3, 100).save_pretrained(tmp_path)
    vocabulary = Vocabulary.read(tmp_path)
    text = pa.table({"title": [""], "text": ["稀" + "水" * 49]})
    rare = tokenise.Tokeniser(tmp_path).tokens(text)
    assert vocabulary.unknown(rare.ids) == 0.02
    assert len(vocabulary.doubts(rare.ids)) == 1
    assert not vocabulary.doubts(rare.ids[1:])
