"""What a run hears of its processes: printed lines, faults of the user's code, heartbeats."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from olaf.jobs.faults import OFTEN, Faults, fault_of
from olaf.jobs.liveness import Liveness
from olaf.jobs.printing import EVERY_S, FILE_BYTES, FIRST, Prints
from olaf.jobs.supervisor import Printed, Said
from olaf.rl.environments import FaultyEnvironmentError


def line(text: str, name: str = "worker 0") -> Printed:
    return Printed(name, 1, text)


def test_the_first_lines_are_shown_then_some_and_the_rest_is_counted(tmp_path: Path) -> None:
    prints = Prints(tmp_path)
    shown = [text for number in range(1000) for text in prints.take(line(f"{number}"), 0.0)]
    assert shown == [str(number) for number in range(FIRST)]
    count, last = prints.take(line("later"), EVERY_S + 1)
    assert last == "later"
    assert count.startswith(f"printed {1000 - FIRST:,} more lines, see ")
    prints.take(line("one more"), EVERY_S + 2)
    assert list(prints.end()) == [
        ("worker 0", f"printed 1 more line, see {tmp_path}/output/worker-0.txt")
    ]
    assert len((tmp_path / "output" / "worker-0.txt").read_text().splitlines()) == 1002


def test_the_file_of_a_process_has_a_size(tmp_path: Path) -> None:
    prints = Prints(tmp_path)
    for _ in range(40):
        prints.take(line("x" * 65_536), 0.0)
    file = tmp_path / "output" / "worker-0.txt"
    assert file.stat().st_size < FILE_BYTES + 2 * 65_536
    assert file.read_text().endswith("(the file ends here: 1 MiB)\n")


def test_a_run_goes_on_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "output").write_text("a file in the way")
    assert Prints(tmp_path).take(line("hello"), 0.0) == ["hello"]


def raised(code: str, file: Path) -> BaseException:
    file.write_text(code)
    space: dict[str, Any] = {}
    exec(compile(code, str(file), "exec"), space)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the code raises
        space["step"]()
    return caught.value


def test_a_fault_has_the_users_frames_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    code = "def inner():\n    return [].pop()\ndef step():\n    return inner()\n"
    fault = fault_of(raised(code, mine))
    assert fault["error"] == "IndexError: pop from empty list"
    assert fault["where"] == f"{mine}:2, in inner"
    assert fault["frames"].index("return inner()") < fault["frames"].index("return [].pop()")
    assert "site-packages" not in fault["frames"]


def test_an_error_inside_a_library_ends_with_the_users_line(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    code = "import json\ndef step():\n    return json.loads('{')\n"
    fault = fault_of(raised(code, mine))
    assert fault["where"] == f"{mine}:3, in step"
    assert "decoder.py" not in fault["frames"]


def test_an_error_of_an_environments_data_is_known_by_its_field() -> None:
    one, other = (
        fault_of(FaultyEnvironmentError(f"environment 'Dot', step {n}: reward is nan"))
        for n in (7, 8)
    )
    assert one["where"] == other["where"]
    assert one["error"] == "environment 'Dot', step 7: reward is nan"
    assert not one["frames"]


def test_the_same_fault_ends_a_run_the_third_time_and_others_do_not() -> None:
    faults = Faults()
    for number in range(10):
        fault = {"event": "fault", "error": "E", "where": f"line {number}", "frames": "x"}
        assert faults.take(fault) is None
    same = {"event": "fault", "error": "KeyError: 1", "where": "mine.py:3", "frames": "x"}
    verdicts = [faults.take(same) for _ in range(OFTEN)]
    assert verdicts[:-1] == [None] * (OFTEN - 1)
    assert verdicts[-1] == "the same error 3 times: KeyError: 1 (mine.py:3)"


def alive(steps: int, *, slowest_s: float = 0.1, per_s: float = 5.0) -> Said:
    message = {
        "event": "alive",
        "worker": 0,
        "steps": steps,
        "steps_per_s": per_s,
        "slowest_step_s": slowest_s,
        "turn_steps": 500,
    }
    return Said("worker 0", 1, message)


def test_the_patience_of_a_run_follows_its_slowest_step() -> None:
    liveness = Liveness(start_s=20, stall_s=60, now_s=0)
    assert liveness.too_quiet(20, ["worker 0"]) is None
    assert liveness.too_quiet(21, ["worker 0"]) == "waited 20 s for the first step of worker 0"
    liveness.take(alive(4), 15)
    assert liveness.too_quiet(75, ["worker 0"]) is None
    said = liveness.too_quiet(76, ["worker 0"])
    assert said is not None
    assert "the last came after 4 steps at 5" in said
    liveness.take(alive(8, slowest_s=30), 76)
    assert liveness.too_quiet(76 + 300, ["worker 0"]) is None
    assert liveness.too_quiet(76 + 301, ["worker 0"]) is not None


def test_a_slow_environment_is_told_once() -> None:
    liveness = Liveness(start_s=20, stall_s=60, now_s=0)
    said = liveness.take(alive(4), 2)
    assert said is not None
    assert "a turn of 500 steps takes" in said
    assert liveness.take(alive(8), 4) is None


def test_a_quick_environment_is_not_told_of() -> None:
    liveness = Liveness(start_s=20, stall_s=60, now_s=0)
    assert liveness.take(alive(4, per_s=500), 2) is None
    liveness.take(Said("worker 0", 1, {"event": "update", "steps": 500}), 3)
    assert liveness.take(alive(504, per_s=5), 5) is None


APART = """
import os, subprocess, sys
from olaf.processes.lines import apart
with apart() as messages:
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "echoed"])
    messages.write("message\\n")
print("after")
"""


def test_messages_have_a_channel_of_their_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", APART], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "message\nafter\n"
    assert done.stderr == "printed\nwritten\nechoed\n"


ORDERS = """
import subprocess, sys
from olaf.processes.lines import orders_apart
orders = orders_apart()
taken = subprocess.run(["cat"], capture_output=True, text=True).stdout
print(repr(taken), repr(sys.stdin.read()), repr(orders.read()))
"""


def test_nobody_else_takes_the_parents_orders() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORDERS],
        input="stop\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == f"'' '' {'stop' + chr(10)!r}\n"
