import pytest

from pipeline.tts.script import Script

SCRIPT = Script(words=["Well", "—", "this", "one"], spans=[(0, 3), (3, 3), (4, 6), (6, 9)], lines=())


@pytest.mark.parametrize(
    ("symbol", "ends"),
    [(0, False), (2, False), (3, True), (4, False), (5, False), (6, True), (8, False), (9, True)],
)
def test_words_end_where_the_last_of_them_was_heard(symbol: int, ends: bool) -> None:
    assert SCRIPT.ends_word(symbol) is ends
