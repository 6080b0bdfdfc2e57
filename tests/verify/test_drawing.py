"""The plot of a verdict shows the verdict's own run."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from specs import SMALL, written

from olaf.verify import draw, instance_of, objective_of, read
from olaf.verify.drawing import losses
from olaf.verify.spec import ObjectiveSpec
from olaf.verify.verdict import Answer
from olaf.verify.verifying import verify


def test_a_plot_of_losses_shows_each_lost_update(tmp_path: Path) -> None:
    spec = read(written(tmp_path, SMALL.replace("slots = 2", "slots = 1")))
    instance = instance_of(spec)
    asked = ObjectiveSpec.model_validate({"kind": "loss", "at_most": 0})
    verdict = verify(instance, objective_of(asked, spec, instance), timeout_s=20)
    assert verdict.answer is Answer.VIOLATED
    assert verdict.witness is not None
    run = verdict.witness.run
    shown = losses(verdict)
    assert len(shown) == sum(run.sent)
    assert 0 < sum(lost for _, _, lost in shown) == sum(run.dropped)
    assert verdict.witness.value == Fraction(sum(run.dropped), sum(run.sent))
    ends_ms = instance.horizon * instance.tick_ns / 1e6
    assert all(0 < at <= ends_ms for at, _, _ in shown), "no update just after the horizon"
    one = replace(verdict, objective=replace(verdict.objective, clusters=(0,)))
    assert {cluster for _, cluster, _ in losses(one)} == {0}
    draw(verdict, tmp_path / "loss.svg")
    assert (tmp_path / "loss.svg").read_text(encoding="utf-8").count("<path") > 10
