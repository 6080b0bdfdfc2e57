"""Pattern files from anywhere: read, or refused with the file and the place. No third way."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olaf.errors.usage import ConfigurationError
from olaf.schedule.reading import BUNDLED, Job, Operation, Pattern, read_jobs, read_pattern
from olaf.schedule.recording import Step, pattern_of
from olaf.schedule.simulation import Cluster, simulate


def read(folder: Path, text: str | bytes) -> Pattern:
    file = folder / "p.json"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_pattern(file)


def step(duration: str = "1", start: str = "0", size: str = "1") -> str:
    return f'{{"duration": {duration}, "allreduces": [{{"start": {start}, "size": {size}}}]}}'


def test_seconds_become_nanoseconds_to_the_nearest(tmp_path: Path) -> None:
    seen = read(tmp_path, step("0.0000000126", "0.0000000014", "7"))
    assert seen == Pattern("p", 13, (Operation(1, 7),))


def test_what_readers_need_not_know_is_ignored(tmp_path: Path) -> None:
    told = {"duration": 1, "allreduces": [], "recorded": {"spread": [None]}, "more": {}}
    assert read(tmp_path, json.dumps(told)) == Pattern("p", 1_000_000_000, ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (step(duration="0"), "duration: a step takes at least a nanosecond"),
        (step(duration="-1"), "duration: -1; must be seconds from 0 to 86400"),
        (step(duration="NaN"), "duration: nan; must be seconds"),
        (step(duration="Infinity"), "duration: inf; must be seconds"),
        (step(duration="true"), "duration: True; must be seconds"),
        (step(duration='"1"'), "duration: 1; must be seconds"),
        (step(duration="1e400000"), "duration: 1E+400000; must be seconds"),
        (step(duration="1e99999999999999999999"), "p.json: a number is too large"),
        (step(duration="1e-99999999999999999999"), "p.json: a number is too large"),
        (step(duration="9" * 5_000), "p.json: a number is too large"),
        (step(start="-0.1"), "allreduces[0].start: -0.1; must be seconds"),
        (step(start="NaN"), "allreduces[0].start: nan; must be seconds"),
        (step(start="86400.0000000001"), "allreduces[0].start: 86400.0000000001; must be seconds"),
        (step(start="null"), "allreduces[0].start: None; must be seconds"),
        (step(start="[" + "1," * 500 + "1]"), "allreduces[0].start: [1, 1, "),
        (step(size="0"), "allreduces[0].size: 0; must be whole bytes, from 1 to 1 TiB"),
        (step(size="-1"), "allreduces[0].size: -1; must be whole bytes"),
        (step(size="1.0"), "allreduces[0].size: Decimal('1.0'); must be whole bytes"),
        (step(size="true"), "allreduces[0].size: True; must be whole bytes"),
        (step(size='"1"'), "allreduces[0].size: '1'; must be whole bytes"),
        (step(size=str((1 << 40) + 1)), "allreduces[0].size: 1099511627777; must be whole bytes"),
        ('{"duration": 1, "allreduces": {}}', "allreduces: must be a list"),
        ('{"duration": 1, "allreduces": [[]]}', 'allreduces[0]: must be {"start": seconds'),
        ('{"duration": 1}', 'a pattern is {"duration": seconds'),
        ("[]", 'a pattern is {"duration": seconds'),
        ("", "p.json:1: not JSON"),
        ("[" * 100_000, "p.json: brackets are nested too deeply"),
        (b"\xff\xfe", "p.json: not UTF-8 text"),
    ],
)
def test_what_is_no_pattern_is_refused_with_its_place(
    text: str | bytes, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        read(tmp_path, text)


def test_starts_must_not_decrease(tmp_path: Path) -> None:
    each = [{"start": start, "size": 1} for start in (1, 1, 0.5)]
    with pytest.raises(ConfigurationError, match=re.escape("allreduces[2].start: earlier than")):
        read(tmp_path, json.dumps({"duration": 1, "allreduces": each}))


def test_a_step_has_an_end_to_its_all_reduces(tmp_path: Path) -> None:
    each = [{"start": 0, "size": 1}] * 65_537
    with pytest.raises(ConfigurationError, match="allreduces: 65537; must be at most 65536"):
        read(tmp_path, json.dumps({"duration": 1, "allreduces": each}))


numbers = st.one_of(
    st.integers(-5, 5), st.integers(), st.floats(), st.booleans(), st.text(max_size=3), st.none()
)
anything = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["start", "size", "duration", "allreduces"]), inner),
    ),
    max_leaves=12,
)
almost = st.fixed_dictionaries(
    {
        "duration": st.one_of(st.floats(0, 1e5), numbers),
        "allreduces": st.lists(
            st.fixed_dictionaries(
                {"start": st.one_of(st.floats(0, 1), numbers), "size": st.integers(-1, 1 << 41)}
            ),
            max_size=3,
        ),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(told=st.one_of(anything, almost))
def test_a_file_is_read_to_what_the_core_takes_or_refused(told: Any, tmp_path: Path) -> None:
    try:
        seen = read(tmp_path, json.dumps(told))
    except ConfigurationError:
        return
    # What the reader lets pass the core takes: one host, one step, so it is over at once.
    outcome, _ = simulate(Cluster(), [seen], [Job("p", 1, 1, line=1)])
    assert len(outcome.jobs) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    duration=st.integers(1, 86_400_000_000_000),
    each=st.lists(
        st.tuples(st.integers(0, 86_400_000_000_000), st.integers(1, 1 << 40)), min_size=1
    ),
)
def test_what_the_recorder_writes_is_read_back_to_the_nanosecond(
    duration: int, each: list[tuple[int, int]], tmp_path: Path
) -> None:
    operations = tuple(sorted(each, key=lambda operation: operation[0]))
    file = tmp_path / "p.json"
    pattern_of([Step(duration, operations, 0, 0)], warmup=1).write(file, model="m")
    assert read_pattern(file) == Pattern("p", duration, tuple(Operation(*o) for o in operations))


def test_the_patterns_that_come_with_olaf_are_read() -> None:
    names = {file.stem for file in BUNDLED.glob("*.json")}
    assert {"mlp", "cnn", "transformer", "resnet18"} <= names
    assert all(read_pattern(BUNDLED / f"{name}.json").operations for name in names)


@pytest.mark.parametrize(
    "line", ["mlp 2", "mlp 0 1", "mlp -1 1", "mlp 1.5 1", "mlp 1 ²", "mlp 1 " + "9" * 5_000]
)
def test_a_job_that_is_none_is_refused_with_its_line(line: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.txt"
    file.write_text(f"# mine\n\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"jobs\.txt:3: "):
        read_jobs(file)
