"""Numbers as people read them."""

import pytest

from olaf.jobs import words
from olaf.values.numbers import counted, counted_shortly, number, score, short


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (214.63, "214.6"),
        (-1152.0, "-1,152.0"),
        (8.254, "8.25"),
        (0.00312, "0.00312"),
        (-0.00312, "-0.00312"),
        (1e-7, "1e-07"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (1.0, "1.0"),
        (0.5, "0.5"),
    ],
)
def test_a_reward_has_three_digits_that_tell(value: float | None, text: str) -> None:
    assert score(value) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (-0.0, 1, "0.0"),
        (-0.04, 1, "-0.04"),
        (0.00312, 1, "0.0031"),
        (0.05, 2, "0.05"),
        (0.3, 0, "0.3"),
        (1234.56, 1, "1,234.6"),
        (0.0, 4, "0.0000"),
    ],
)
def test_no_number_becomes_nothing_by_its_decimals(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


def test_a_short_number_has_no_negative_nothing() -> None:
    assert [short(-0.0), short(0.0), short(-0.031)] == ["0", "0", "-0.031"]
    assert [short(-0.0, 2), short(-1e-8, 2), short(-0.5, 2)] == ["0.00", "0.00", "-0.50"]


def test_a_count_has_its_noun() -> None:
    assert [counted(n, "worker") for n in (0, 1, 1234)] == [
        "0 workers",
        "1 worker",
        "1,234 workers",
    ]
    assert counted(2, "leaf", "leaves") == "2 leaves"
    means = [counted_shortly(mean, "step") for mean in (1.0, 18.23, 230.4)]
    assert means == ["1 step", "18.2 steps", "230 steps"]


def test_a_sentence_counts_in_singular_and_plural() -> None:
    said = {"event": "suppressed", "of": "worker_silent"}
    assert words.sentence({**said, "lines": 1}) == "1 more line of worker_silent left out"
    assert words.sentence({**said, "lines": 3}) == "3 more lines of worker_silent left out"
    missing = words.sentence({"event": "path", "mtu_bytes": 9000})
    assert missing == "the path carries packets of 9,000 bytes: segments of ? values"
