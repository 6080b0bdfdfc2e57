import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from occurring import Heard
from waiting import is_gone, until

from olaf.jobs.supervisor import LINE_BYTES, Ended, Printed, Program, Said, Started, Supervisor

TALKER = """
import json, os, sys
print(json.dumps({"event": "here", "pid": os.getpid(), "told": sys.stdin.readline().strip()}))
sys.stdout.flush()
for line in sys.stdin:
    if line.strip() == "stop":
        print(json.dumps({"event": "stopped"}), flush=True)
        sys.exit(0)
"""


def python(name: str, code: str, first_line: str = "") -> Program:
    return Program(name, [sys.executable, "-c", code], first_line)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor(restarts=2, restart_delay_s=0.01) as made:
        yield made


def test_a_child_is_told_its_first_line_and_heard(supervisor: Supervisor) -> None:
    supervisor.start(python("talker", TALKER, first_line="hello"))
    said = Heard(supervisor).of(Said)
    assert said.name == "talker"
    assert said.message["told"] == "hello"


def test_a_killed_child_is_named_and_comes_back(supervisor: Supervisor) -> None:
    heard = Heard(supervisor)
    supervisor.start(python("talker", TALKER, first_line="go"))
    os.kill(heard.of(Started).pid, signal.SIGKILL)
    died = heard.of(Ended)
    assert (died.name, died.code, died.expected) == ("talker", -signal.SIGKILL, False)
    assert died.how == "killed by SIGKILL"
    assert died.back_in_s == pytest.approx(0.01)
    assert heard.of(Started, incarnation=2).pid != heard.of(Started, incarnation=1).pid
    assert heard.of(Said, incarnation=2).message["event"] == "here"
    assert supervisor.restarts() == {"talker": 1}


def test_a_child_that_always_dies_is_given_up_after_growing_pauses(supervisor: Supervisor) -> None:
    supervisor.start(python("wreck", "raise SystemExit(3)"))
    heard = Heard(supervisor)
    last = heard.of(Ended, incarnation=3)
    assert last.back_in_s is None
    assert last.how == "exited with 3 (unreachable)"
    pauses = [n.back_in_s for n in heard.occurrences if isinstance(n, Ended)]
    assert pauses == [pytest.approx(0.01), pytest.approx(0.02), None]
    assert supervisor.alive() == []


def test_a_wrong_configuration_is_not_tried_twice(supervisor: Supervisor) -> None:
    supervisor.start(python("wrong", "import sys; sys.exit('no') if 0 else sys.exit(2)"))
    assert Heard(supervisor).of(Ended).back_in_s is None


def test_a_child_that_finishes_is_left_alone(supervisor: Supervisor) -> None:
    supervisor.start(python("brief", 'print(\'{"event": "done"}\')'))
    heard = Heard(supervisor)
    ended = heard.of(Ended)
    assert (ended.code, ended.expected, ended.back_in_s) == (0, True, None)
    assert heard.of(Said).message == {"event": "done"}


def test_a_child_that_has_a_last_word_dies_without_it(supervisor: Supervisor) -> None:
    brief = python("brief", 'print(\'{"event": "done"}\')')
    supervisor.start(dataclasses.replace(brief, last_event="done"))
    assert Heard(supervisor).of(Ended).expected
    supervisor.start(dataclasses.replace(brief, name="cut", last_event="stopped"))
    ended = Heard(supervisor).of(Ended)
    assert (ended.code, ended.expected) == (0, False)
    assert ended.back_in_s is not None
    assert ended.how == "exited with 0 in the middle of its work"


def test_errors_and_anything_but_json_are_passed_on_as_text(supervisor: Supervisor) -> None:
    code = "import sys; print('plain'); print('{not json'); sys.stderr.write('no newline')"
    supervisor.start(python("loud", code))
    heard = Heard(supervisor)
    for text in ("plain", "{not json", "no newline"):
        heard.of(Printed, text=text)


def test_lines_longer_than_a_pipe_arrive_whole(supervisor: Supervisor) -> None:
    supervisor.start(python("long", "import json; print(json.dumps({'event': 'x' * 300000}))"))
    assert len(Heard(supervisor).of(Said).message["event"]) == 300_000


def test_stopping_lets_a_child_say_its_last(supervisor: Supervisor) -> None:
    supervisor.start(python("talker", TALKER, first_line="go"))
    Heard(supervisor).of(Said)
    last = list(supervisor.stop(["talker"], timeout_s=20))
    assert any(isinstance(n, Said) and n.message["event"] == "stopped" for n in last)
    assert any(isinstance(n, Ended) and n.expected for n in last)


def test_a_child_that_will_not_stop_is_killed_at_the_deadline(supervisor: Supervisor) -> None:
    code = 'import json, time; print(\'{"event": "deaf"}\', flush=True); time.sleep(600)'
    supervisor.start(python("deaf", code))
    Heard(supervisor).of(Said)
    last = list(supervisor.stop(["deaf"], timeout_s=0.1))
    assert [n.code for n in last if isinstance(n, Ended)] == [-signal.SIGKILL]


def test_ctrl_c_at_the_terminal_is_for_the_parent_alone(supervisor: Supervisor) -> None:
    supervisor.start(python("talker", TALKER, first_line="go"))
    pid = Heard(supervisor).of(Started).pid
    assert os.getpgid(pid) != os.getpgid(0)


KEEPER = """
import json, os, subprocess, sys
held = subprocess.Popen(["sleep", "4242"])
print(json.dumps({"event": "here", "held": held.pid}), flush=True)
sys.stdin.readline()
"""


def test_a_child_is_dead_when_it_has_exited_though_others_hold_its_pipes(
    supervisor: Supervisor,
) -> None:
    supervisor.start(python("keeper", KEEPER))
    heard = Heard(supervisor)
    held = heard.of(Said).message["held"]
    os.kill(heard.of(Started).pid, signal.SIGKILL)
    assert heard.of(Ended).how == "killed by SIGKILL"
    until(lambda: is_gone(held), what="the program that the child had started to end")
    assert heard.of(Said, incarnation=2).message["event"] == "here"


@pytest.mark.parametrize("way", ["asked", "closed"])
def test_no_stop_waits_for_programs_that_a_child_has_started(
    supervisor: Supervisor, way: str
) -> None:
    supervisor.start(python("keeper", KEEPER))
    held = Heard(supervisor).of(Said).message["held"]
    if way == "asked":
        last = list(supervisor.stop(["keeper"], timeout_s=20))
        assert [n.expected for n in last if isinstance(n, Ended)] == [True]
    else:
        supervisor.close()
    until(lambda: is_gone(held), what="the program that the child had started to end")


def test_a_program_that_never_stops_printing_does_not_hold_up_the_end(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    code = (
        "import subprocess, sys; held = subprocess.Popen(['yes'], start_new_session=True); "
        f"open({str(file)!r}, 'w').write(str(held.pid)); sys.stdin.readline()"
    )
    supervisor.start(python("noisy", code))

    def sees(kind: type[Printed] | type[Ended]) -> bool:
        return any(isinstance(one, kind) for one in supervisor.poll(0.05))

    until(lambda: sees(Printed), what="a printed line")
    until(file.exists, what="the number of the program's process")
    supervisor.retire(["noisy"], "end")
    until(lambda: sees(Ended), what="the end")
    held = int(file.read_text())
    until(lambda: is_gone(held), what="the program that prints to a closed pipe to end")


def test_json_without_an_event_is_a_line_like_any_other(supervisor: Supervisor) -> None:
    supervisor.start(python("logger", 'print(\'{"level": "info"}\'); print(\'{"event": 3}\')'))
    heard = Heard(supervisor)
    heard.of(Printed, text='{"level": "info"}')
    heard.of(Printed, text='{"event": 3}')


def test_a_line_without_an_end_does_not_fill_the_memory(supervisor: Supervisor) -> None:
    code = "import sys; sys.stderr.write('x' * 3_000_000)"
    supervisor.start(python("endless", code))
    heard = Heard(supervisor)
    heard.of(Ended)
    lines = [n.text for n in heard.occurrences if isinstance(n, Printed)]
    assert sum(map(len, lines)) == 3_000_000
    assert max(map(len, lines)) <= LINE_BYTES + (1 << 16)


def test_a_parent_that_is_killed_leaves_no_orphans(tmp_path: Path) -> None:
    parent = """
import json, sys, time
from olaf.jobs.supervisor import Program, Said, Supervisor
child = '''
import json, os, sys
from olaf.processes.lines import Control
control = Control()
control.watch(sys.stdin)
print(json.dumps({"event": "here", "pid": os.getpid()}), flush=True)
while not control.wait(600):
    pass
open(sys.argv[1], "w").write(control.why)
'''
with Supervisor() as supervisor:
    supervisor.start(Program("child", [sys.executable, "-c", child, sys.argv[1]]))
    while True:
        for occurrence in supervisor.poll(1):
            if isinstance(occurrence, Said):
                print(json.dumps(occurrence.message), flush=True)
"""
    note = tmp_path / "note"
    with subprocess.Popen(
        [sys.executable, "-c", parent, str(note)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        child = json.loads(process.stdout.readline())["pid"]
        process.kill()

    def gone() -> bool:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return True
        return False

    until(gone, what="the child to end")
    assert note.read_text() == "parent gone"
