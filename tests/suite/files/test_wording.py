from suite.files.wording import are, counted, last_words


def test_a_count_agrees_with_its_noun_and_its_verb() -> None:
    assert [counted(number, "round") for number in (0, 1, 2)] == ["0 rounds", "1 round", "2 rounds"]
    assert [counted(number, "minute") for number in (0.5, 1.0, 1.5)] == ["0.5 minutes", "1 minute", "1.5 minutes"]
    assert [are(number) for number in (0, 1, 2)] == ["are", "is", "are"]


def test_the_last_words_are_one_line_even_if_there_are_none() -> None:
    assert last_words("one\ntwo\nthree\n\n", 2) == "two three"
    assert last_words("\n") == "it said nothing"
