"""ATP's figures: what their settings must give, whatever they measure."""

from __future__ import annotations

from typing import Any

import pytest

from olaf.experiments.atp import cluster, fig8, fig9, fig10, fig12, fig13, fig14, fig20
from olaf.experiments.catalog import find, plan

NS_PER_MS = 1e6


def parameters(name: str, **changes: Any) -> Any:
    figure = find(name)
    overrides = [f"{key}={value}" for key, value in changes.items()]
    return plan(figure, quick=True, overrides=overrides).parameters


def test_the_printed_aggregators_just_fill_the_link() -> None:
    given = parameters("atp/fig14", megabytes=2, jobs=[1])
    goodput = {}
    for share in (0.5, 1, 2):
        changed = given.model_copy(update={"aggregators": round(given.aggregators * share)})
        job = {
            "name": "job",
            "engine": "atp",
            "workers": 2,
            "model_bytes": 2_000_000,
            "iterations": 1,
            "compute_ns": 0,
            "protocol": changed.protocol("static", 0, 1),
        }
        network = given.network(2)
        aggregators = changed.share_of(changed.aggregators)
        one = cluster.run(network, [job], 0, aggregators=aggregators).jobs[0]
        goodput[share] = 2 * 8e6 / one.iteration_ns
    line = given.rate_gbit * cluster.PACKET_BYTES / cluster.FRAME_BYTES
    assert goodput[1] == pytest.approx(line, rel=0.07)
    assert goodput[0.5] == pytest.approx(line / 2, rel=0.07)
    assert goodput[2] == pytest.approx(goodput[1], rel=0.07)


def test_static_jobs_never_meet_and_a_third_of_the_aggregators_is_a_third_as_fast() -> None:
    given = parameters("atp/fig13", compute_spread=0, overlap=0)
    sums = {}
    for share in (100, 33):
        outcome = fig13.train(given, share, "static", 0)
        assert outcome.jobs[0].collisions == 0
        sums[share] = min(job.aggregation_ns for job in outcome.jobs)
    assert 2.5 < sums[33] / sums[100] < 3.2


def test_dynamic_jobs_take_what_static_ones_leave() -> None:
    given = parameters("atp/fig13", packets=4000)
    runs: fig13.Runs = {(arm, 33): [fig13.train(given, 33, arm, 0)] for arm in ("static", "window")}
    assert fig13.ratios(given, runs, ("static", 33), ("window", 33)).mean > 1.2
    assert runs["window", 33][0].jobs[0].at_server > 0


def test_aggregators_in_sequence_collide_and_static_ones_do_not() -> None:
    given = parameters("atp/fig14", jobs=[4])
    taken = {
        arm: fig14.aggregate(given, 4, arm, 0).jobs[0].collisions
        for arm in ("linear", "static", "window")
    }
    assert taken["static"] == 0
    assert taken["linear"] > taken["window"] > 0


def test_the_server_gets_a_sum_or_one_of_each_rack() -> None:
    given = parameters("atp/fig9", megabytes=1)
    links = {arm: fig9.measure(given, arm, 0, 0) for arm in fig9.ARMS}
    assert links["rack-scale"].bytes / links["ATP"].bytes == pytest.approx(3, rel=0.03)


def test_losses_at_one_worker_cost_both_systems_time() -> None:
    given = parameters("atp/fig10", workers=4, megabytes=1)
    for arm in fig10.ARMS:
        none, some = (fig10.aggregate(given, arm, loss, 0) for loss in (0, 1))
        assert none.resent == 0
        assert some.resent > 0
        assert some.iteration_ns > none.iteration_ns


def test_times_to_compute_follow_from_the_paper() -> None:
    given = parameters("atp/fig8")
    assert given.model_ms("VGG16") == pytest.approx(32 / (159.3 / 0.9) * 1e3)
    assert given.model_ms("ResNet50") < given.model_ms("VGG16")
    training = parameters("atp/fig13")
    assert training.compute_ms() == pytest.approx(given.model_ms("VGG16"))


def test_one_server_takes_all_vectors_in_and_out() -> None:
    given = parameters("atp/fig8", workers=4, scale=1000)
    one = fig8.train(given, "AlexNet", "ps_1", 0)
    each = fig8.train(given, "AlexNet", "ps_n", 0)
    vector_ms = given.models["AlexNet"].megabytes * 8 / given.rate_gbit
    assert 4 * vector_ms < one.aggregation_ns / NS_PER_MS < 9 * vector_ms
    assert each.aggregation_ns < one.aggregation_ns / 3


def test_workers_that_differ_send_nothing_again() -> None:
    given = parameters("atp/fig8", workers=4, scale=2000, compute_spread=0.2)
    for arm in ("atp", "switchml"):
        job = fig8.train(given, "VGG19", arm, 0)
        assert job.wait_ns > 5e6, "longer than the time-out that ATP usually has"
        assert job.resent == 0


def test_a_speed_up_is_below_what_computation_allows() -> None:
    given = parameters("atp/fig8", workers=4, scale=2000)
    runs: fig8.Runs = {
        (model, arm): [fig8.train(given, model, arm, 0)]
        for model in given.models
        for arm in fig8.ARMS
    }
    limits = {bound.quantity: bound.value for bound in fig8.bounds(given, runs)}
    for arm, name in fig8.ARMS.items():
        if arm != "atp":
            most = max(fig8.speed_ups(given, runs, model, arm)[0] for model in given.models)
            assert 1 < most < limits[f"speed-up over {name}"]


def test_both_jobs_of_a_dumbbell_cross_it_and_share_no_host() -> None:
    near = set(range(fig12.ENDS[0]))
    assert set(fig12.HOSTS[0]).isdisjoint(fig12.HOSTS[1])
    assert all(len(near.intersection(hosts)) == 1 for hosts in fig12.HOSTS)
    given = parameters("atp/fig12", compute_spread=0, overlap=0)
    times = {arm: [job.aggregation_ns for job in fig12.train(given, arm, 0)] for arm in fig12.ARMS}
    # With nothing hidden, servers and ring send each vector more than once.
    assert max(times["atp"]) < min(*times["ring"], *times["ps_n"])


def test_a_job_beside_another_one_keeps_at_most_its_speed_alone() -> None:
    given = parameters("atp/fig20", compute_spread=0, overlap=0, packets=1000, iterations=3)
    name = "3 and 3 workers"
    beside = [fig20.speed(given, job) for job in fig20.train(given, name, "window", (0, 1), 0)]
    for at in (0, 1):
        (one,) = fig20.train(given, name, "window", (at,), 0)
        assert 0.5 < beside[at] / fig20.speed(given, one) < 1.02


def test_another_model_has_its_own_bytes_computation_and_iterations() -> None:
    given = parameters("atp/fig20")
    whole, other = (fig20.job(given, model, "job") for model in ("VGG16", "ResNet50"))
    assert other["model_bytes"] == pytest.approx(98 / 528 * whole["model_bytes"], rel=0.01)
    assert other["compute_ns"] == pytest.approx(4.09 / 15.47 * whole["compute_ns"], rel=0.01)
    # Both jobs last about as long.
    last = other["iterations"] * other["compute_ns"]
    assert last == pytest.approx(whole["iterations"] * whole["compute_ns"], rel=0.2)
