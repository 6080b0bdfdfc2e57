"""From what happened, and when, to the pattern of a step. No torch here."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olaf.schedule.recording import Recording, RecordingError, Step, pattern_of


def drive(recording: Recording, text: str, size: int = 10) -> Recording:
    """A trace of ``TIME EVENT``: launch (=BYTES), wait, got, step."""
    for line in text.replace(";", "\n").splitlines():
        if not line.strip():
            continue
        time, event, *rest = line.split()
        now_ns = int(time)
        match event:
            case "launch":
                recording.started(now_ns, int(rest[0]) if rest else size)
            case "wait":
                recording.waiting(now_ns)
            case "got":
                recording.waited(now_ns)
            case "step":
                recording.stepped(now_ns)
    return recording


def test_a_step_lasts_from_the_end_of_a_wait_to_the_begin_of_the_next() -> None:
    seen = drive(
        Recording(steps=1, warmup=1),
        """
        5 launch; 9 wait; 50 got; 50 step
        80 launch 7; 90 launch 8; 100 wait; 400 got; 401 step
        """,
    ).result()
    assert seen.duration_ns == 50, "the optimiser and the next forward pass are in it, waiting not"
    assert seen.operations == ((30, 7), (40, 8))
    assert seen.recorded["waiting"] == 300e-9


def test_a_network_however_slow_does_not_change_what_is_recorded() -> None:
    def with_waits_of(wait_ns: int) -> object:
        recording, now_ns = Recording(steps=3, warmup=2), 0
        for _ in range(5):
            now_ns = now_ns + 40
            recording.started(now_ns, 5)
            recording.started(now_ns + 10, 6)
            now_ns += 12
            recording.waiting(now_ns)
            now_ns += wait_ns
            recording.waited(now_ns)
            recording.stepped(now_ns + 1)
        pattern = recording.result()
        return pattern.duration_ns, pattern.operations

    assert with_waits_of(0) == with_waits_of(1_000_000) == (52, ((40, 5), (50, 6)))


def test_blocking_calls_in_a_row_start_together_but_for_what_is_computed_between() -> None:
    seen = drive(
        Recording(steps=1, warmup=1),
        """
        0 launch; 0 wait; 10 got; 20 step
        40 launch 1; 40 wait; 90 got; 92 launch 2; 92 wait; 200 got; 230 step
        """,
    ).result()
    assert seen.operations == ((30, 1), (32, 2))
    assert seen.duration_ns == 32
    assert seen.recorded["between_waits"] == 2e-9


def test_what_is_launched_after_the_last_wait_belongs_to_the_next_step() -> None:
    seen = drive(
        Recording(steps=1, warmup=1),
        """
        0 launch; 5 wait; 10 got; 12 launch 3; 14 step
        20 launch 4; 30 wait; 60 got; 62 launch 3; 64 step
        """,
    ).result()
    assert seen.operations == ((2, 3), (10, 4))


def test_the_median_of_the_steps_is_kept_and_the_warming_up_forgotten() -> None:
    recording = Recording(steps=3, warmup=2)
    now_ns = 0
    for duration_ns in (9_000, 7_000, 100, 900, 110):
        recording.started(now_ns + duration_ns // 2, 1)
        now_ns += duration_ns
        recording.waiting(now_ns)
        recording.waited(now_ns)
        assert not recording.complete
        recording.stepped(now_ns)
    assert recording.complete
    seen = recording.result()
    assert (seen.duration_ns, seen.operations) == (110, ((55, 1),))
    assert seen.recorded["spread"]["duration"]["most"] == 900e-9
    assert seen.recorded["spread"]["start"]["most"] == 450e-9


def test_a_step_without_waits_ends_where_it_is_said() -> None:
    seen = drive(
        Recording(steps=1, warmup=1), "0 launch; 10 step; 30 launch 2; 40 launch 3; 70 step"
    ).result()
    assert (seen.duration_ns, seen.operations) == (60, ((20, 2), (30, 3)))


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([((1, 5),), ((1, 5), (2, 5))], "step 2 launched 2 all-reduces of 5, 5 bytes; step 1 1"),
        ([((1, 5), (2, 6)), ((1, 6), (2, 5))], "step 2 launched 2 all-reduces of 6, 5 bytes"),
        ([()], "step 1 launched no all-reduce"),
        ([((0, (1 << 40) + 1),)], "all-reduce 1 of 1099511627777 bytes: at most 1 TiB"),
        ([((0, 1),) * 65_537], "65537 all-reduces in a step, at most 65536"),
    ],
)
def test_what_makes_no_pattern_is_refused(
    steps: list[tuple[tuple[int, int], ...]], words: str
) -> None:
    with pytest.raises(RecordingError, match=words.replace(".", r"\.")):
        pattern_of([Step(10, each, 0, 0) for each in steps], warmup=1)


@pytest.mark.parametrize("duration_ns", [0, 86_400_000_000_001])
def test_a_step_of_no_time_or_of_more_than_a_day_is_refused(duration_ns: int) -> None:
    with pytest.raises(RecordingError, match="from 1 ns to a day"):
        pattern_of([Step(duration_ns, ((0, 1),), 0, 0)], warmup=1)


def test_too_few_steps_are_refused_with_their_number() -> None:
    recording = drive(Recording(steps=4, warmup=2), "0 step; 1 step; 2 launch; 3 step")
    with pytest.raises(RecordingError, match="recorded 1 of 4 steps after 2 of 2 for warming up"):
        recording.result()


@pytest.mark.parametrize(("steps", "warmup"), [(0, 1), (1, 0), (1, -2)])
def test_at_least_one_step_and_one_to_forget(steps: int, warmup: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Recording(steps, warmup)


def test_the_file_holds_seconds_and_bytes_and_where_they_come_from(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    pattern_of([Step(2_000_000_001, ((1_500_000_000, 7),), 0, 0)], warmup=3).write(
        file, model="m", batch=2
    )
    told = json.loads(file.read_text())
    assert told["duration"] == 2.000000001
    assert told["allreduces"] == [{"start": 1.5, "size": 7}]
    assert (told["recorded"]["model"], told["recorded"]["steps"]) == ("m", 1)
    assert list(tmp_path.iterdir()) == [file], "nothing half written is left"


steps_alike = st.integers(1, 6).flatmap(
    lambda count: st.lists(
        st.lists(st.integers(0, 1000), min_size=count, max_size=count).map(sorted),
        min_size=1,
        max_size=9,
    )
)


@given(steps_alike)
def test_starts_never_decrease_and_lie_within_the_step(series: list[list[int]]) -> None:
    steps = [Step(starts[-1] + 1, tuple((s, 1) for s in starts), 0, 0) for starts in series]
    seen = pattern_of(steps, warmup=1)
    starts = [start_ns for start_ns, _ in seen.operations]
    assert starts == sorted(starts)
    assert starts[-1] < seen.duration_ns


events = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from(["launch", "wait", "got", "step"])), max_size=80
)


@given(events)
def test_any_order_of_events_gives_a_pattern_or_says_why_not(
    trace: list[tuple[int, str]],
) -> None:
    recording, now_ns, lines, waited_ns = Recording(steps=2, warmup=1), 0, [], 0
    since: int | None = None
    for after_ns, event in trace:
        now_ns += after_ns
        lines.append(f"{now_ns} {event}")
        if event == "wait" and since is None:
            since = now_ns
        elif event == "got" and since is not None:
            waited_ns, since = waited_ns + now_ns - since, None
    try:
        seen = drive(recording, "\n".join(lines)).result()
    except RecordingError:
        return
    assert 0 < seen.duration_ns <= now_ns - waited_ns
    assert all(0 <= start_ns <= seen.duration_ns for start_ns, _ in seen.operations)
