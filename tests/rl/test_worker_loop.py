"""The loop against a connection made of lists: what is pushed, when weights are replaced."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from olaf.rl.learner import Iteration, Parts
from olaf.rl.worker_loop import Loop, LoopConfig, Progress, work


class Steady:
    """A learner whose every turn moves its two parts by +1: an update of 1000 at gamma 0.001."""

    def __init__(self) -> None:
        self.weights = [np.zeros(2, np.float32), np.zeros((2, 2), np.float32)]
        self.parameters = 6
        self.turns = 0
        self.steps_of_run: Callable[[], int] = lambda: 10 * self.turns

    def parts(self) -> Parts:
        return self.weights

    def close(self) -> None: ...

    def iterate(self) -> Iteration:
        self.collect()
        return self.learn()

    def collect(self) -> int:
        self.turns += 1
        return 10

    def learn(self, passes: int | None = None) -> Iteration:
        for part in self.weights:
            part[...] = part + 1
        update = [np.full_like(part, 1000) for part in self.weights]
        return Iteration(update, 0.001, float(self.turns), 10, (1.0, 2.0), 0.25, 0.5)


class InPasses(Steady):
    """Its turns have three passes, each of which moves the parts by +1."""

    left = 0

    def collect(self) -> int:
        self.left = 3
        return super().collect()

    def learn(self, passes: int | None = None) -> Iteration:
        count = self.left if passes is None else passes
        is_first, self.left = self.left == 3, self.left - count
        for part in self.weights:
            part[...] = part + count
        update = [np.full_like(part, 1000 * count) for part in self.weights]
        steps, ended = (10, (1.0, 2.0)) if is_first else (0, ())
        return Iteration(
            update, 0.001, 1.5, steps, ended, 0.0, 0.5, passes=count, is_last=not self.left
        )


class Fake:
    """Answers as the test says: ``answers[n]`` is what has come after the n-th push."""

    def __init__(self, answers: list[tuple[int, float] | None], first: float = 0.0) -> None:
        self.answers = answers
        self.first = first
        self.offered: list[float] = []
        self.pushed: list[tuple[float, float, float]] = []
        self.waited: list[tuple[int, float]] = []
        self.held: set[int] = set()
        self.asked = 0

    def join(self, weights: Parts, timeout_s: float) -> int:
        self.offered.append(float(weights[0][0]))
        return 1

    def push(self, parts: Parts, *, reward: float, weight: float = 1.0) -> int:
        self.pushed.append((float(parts[0][0]), reward, weight))
        return len(self.pushed) - 1

    def pull(self, parts: Parts, newer_than: int) -> int | None:
        answer = self.answers[len(self.pushed) - 1] if self.pushed else (1, self.first)
        if answer is None or answer[0] <= newer_than:
            return None
        for part in parts:
            part[...] = answer[1]
        return answer[0]

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        self.waited.append((newer_than, timeout_s))
        return None

    def awaits_end(self) -> bool:
        return bool(self.pushed) and self.answers[len(self.pushed) - 1] is None

    def refresh(self) -> None:
        self.asked += 1

    def refreshed(self, timeout_s: float) -> bool:
        return True

    def holding(self) -> bool:
        return len(self.pushed) - 1 in self.held


def run(
    connection: Fake,
    updates: int,
    config: LoopConfig | None = None,
    clock: Callable[[], float] = lambda: 0.0,
) -> tuple[Steady, list[Progress]]:
    learner, seen = Steady(), list[Progress]()
    last = work(
        learner,
        connection,
        worker=3,
        updates=updates,
        on_progress=seen.append,
        config=config,
        clock=clock,
    )
    assert seen[-1] == last
    return learner, seen


def test_a_worker_starts_from_the_job_s_model_not_from_its_own() -> None:
    connection = Fake([None], first=5.0)
    learner, _ = run(connection, 1)
    assert connection.offered == [0.0]
    assert (learner.weights[1] == 6.0).all()


def test_without_an_answer_it_goes_on_from_its_own_weights() -> None:
    connection = Fake([None, None, None])
    learner, seen = run(connection, 3)
    assert (learner.weights[0] == 3.0).all()
    assert [p.model_version for p in seen] == [1, 1, 1]
    assert [p.staleness for p in seen] == [0, 0, 0]
    assert connection.pushed == [(1000.0, 1.0, 1.0), (1000.0, 2.0, 1.0), (1000.0, 3.0, 1.0)]


def test_a_newer_model_replaces_the_weights_and_an_older_does_not() -> None:
    learner, seen = run(Fake([(4, 10.0), (4, 99.0), (6, 20.0)]), 3)
    assert (learner.weights[0] == 20.0).all()
    assert [p.model_version for p in seen] == [1, 4, 4]
    assert [p.staleness for p in seen] == [3, 0, 2]


def test_a_refused_worker_may_go_back_to_what_it_was_given() -> None:
    answers: list[tuple[int, float] | None] = [(2, 10.0), None, None]
    kept, _ = run(Fake(list(answers)), 3, LoopConfig(on_refused="continue"))
    gone_back, _ = run(Fake(list(answers)), 3, LoopConfig(on_refused="reset"))
    assert (kept.weights[0] == 12.0).all()
    assert (gone_back.weights[0] == 10.0).all()


def test_before_any_answer_going_back_means_the_model_joined_with() -> None:
    learner, _ = run(Fake([None, None], first=7.0), 2, LoopConfig(on_refused="reset"))
    assert (learner.weights[0] == 7.0).all()


def test_it_waits_for_an_answer_only_with_patience() -> None:
    patient, hasty = Fake([None, (3, 0.0), None]), Fake([None] * 3)
    run(patient, 3)
    run(hasty, 3, LoopConfig(patience_s=0))
    assert [version for version, _ in patient.waited] == [1, 1, 3]
    assert hasty.waited == []


@pytest.mark.parametrize("config", [LoopConfig(patience_s=0.5), LoopConfig(wait_for_model_s=9.0)])
def test_nobody_waits_for_an_answer_to_what_is_held_back(config: LoopConfig) -> None:
    connection = Waiting([None, (4, 10.0), (6, 20.0)], comes_after_s=0.2)
    connection.held = {0, 1}
    waits: list[int] = []
    learner = Steady()
    work(
        learner, connection, worker=0, updates=3, config=config, clock=lambda: connection.now,
        on_progress=lambda progress: waits.append(len(connection.waited)),
    )  # fmt: skip
    assert [count > 0 for count in waits] == [False, False, True]
    assert learner.weights[0][0] == 20.0


def test_progress_adds_up() -> None:
    connection = Waiting([(2, 0.0), (3, 0.0), (4, 0.0), (5, 0.0)], comes_after_s=0.01)
    seen: list[Progress] = []
    work(
        Steady(), connection, worker=3, updates=4, config=LoopConfig(weight=2.0),
        clock=lambda: connection.now, on_progress=seen.append,
    )  # fmt: skip
    last = seen[-1]
    assert (last.worker, last.updates, last.steps, last.episodes) == (3, 4, 40, 8)
    assert last.episode_rewards == (1.0, 2.0)
    assert last.reward == 4.0
    assert (last.seconds_env, last.seconds_learn) == (1.0, 2.0)
    assert last.seconds_network == pytest.approx(connection.now)


def test_the_weight_travels() -> None:
    connection = Fake([None])
    run(connection, 1, LoopConfig(weight=2.5))
    assert connection.pushed[0][2] == 2.5


def test_several_turns_are_pushed_as_one_and_no_model_is_taken_between() -> None:
    connection = Fake([(5, 50.0), (6, 60.0)])
    learner, seen = run(connection, 2, LoopConfig(turns_per_push=3, weight=2.0))
    assert learner.turns == 6
    # Each turn changes 1000 and has episodes of reward 1 and 2.
    assert connection.pushed == [(3000.0, 1.5, 2.0), (3000.0, 1.5, 2.0)]
    assert [len(now.pushes_at_s) for now in seen] == [0, 0, 1] * 2
    assert [now.updates for now in seen] == [0, 0, 1, 1, 1, 2]
    assert [now.steps for now in seen] == [10, 20, 30, 40, 50, 60]
    assert [now.model_version for now in seen] == [1, 1, 1, 5, 5, 5]
    assert connection.waited == [(1, 0.02), (5, 0.02)]
    assert (learner.weights[0] == 60.0).all()


def test_a_push_of_several_turns_has_the_reward_of_the_episodes_that_ended() -> None:
    class Short(Steady):
        """Its second turn ends an episode of reward 7, the others none."""

        def learn(self, passes: int | None = None) -> Iteration:
            turn = super().learn(passes)
            ended = (7.0,) if self.turns == 2 else ()
            return dataclasses.replace(turn, episode_rewards=ended)

    connection = Fake([None, None])
    config = LoopConfig(turns_per_push=2)
    work(Short(), connection, worker=0, updates=2, config=config)
    assert [reward for _, reward, _ in connection.pushed] == [7.0, 4.0]


def test_the_losses_of_a_turn_are_the_means_over_its_passes() -> None:
    class Losing(InPasses):
        """Its passes have the losses 1, 2 and 3, and the last one another number."""

        def learn(self, passes: int | None = None) -> Iteration:
            turn = super().learn(passes)
            losses = {"value": float(3 - self.left)}
            return dataclasses.replace(turn, losses=losses | ({"kl": 0.5} if turn.is_last else {}))

    seen: list[Progress] = []
    work(Losing(), Fake([(2, 1.0), (3, 2.0)] * 3), worker=0, updates=6, on_progress=seen.append)
    assert [now.losses for now in seen] == [{"value": 2.0, "kl": 0.5}] * 2


def test_each_pass_begins_from_the_newest_model_and_is_pushed_by_itself() -> None:
    connection = Fake([(2, 20.0), (3, 30.0), (4, 40.0)])
    seen: list[Progress] = []
    learner = InPasses()
    work(learner, connection, worker=0, updates=3, on_progress=seen.append)
    assert [pushed for pushed, _, _ in connection.pushed] == [1000.0] * 3
    assert [(now.updates, now.turns, now.steps, now.episodes) for now in seen] == [(3, 1, 10, 2)]
    assert len(seen[0].pushes_at_s) == 3
    assert connection.asked == 1
    assert (learner.weights[0] == 40.0).all()


def test_what_is_learnt_while_an_update_is_unanswered_goes_with_the_next_push() -> None:
    # Nothing comes after the first push of the turn; its answer comes after the second.
    connection = Fake([None, (2, 20.0)])
    learner = InPasses()
    work(learner, connection, worker=0, updates=2)
    assert [pushed for pushed, _, _ in connection.pushed] == [1000.0, 2000.0]
    assert (learner.weights[0] == 20.0).all()


def test_what_is_not_pushed_yet_stays_on_top_of_a_model_that_comes() -> None:
    class Late(Fake):
        """The answer to the first push comes when the worker is about to make its third pass."""

        pulls = 0

        def pull(self, parts: Parts, newer_than: int) -> int | None:
            self.pulls += 1
            self.answers[0] = (2, 20.0) if self.pulls == 5 else None
            return super().pull(parts, newer_than)

    connection = Late([None, (3, 30.0)])
    learner, loop_weights = InPasses(), list[float]()

    class Watched(InPasses):
        def learn(self, passes: int | None = None) -> Iteration:
            loop_weights.append(float(self.weights[0][0]))
            return super().learn(passes)

    learner = Watched()
    work(learner, connection, worker=0, updates=2)
    # Before its passes: the joined model; that and what was pushed; the answer and the second pass.
    assert loop_weights == [0.0, 1.0, 21.0]
    assert [pushed for pushed, _, _ in connection.pushed] == [1000.0, 2000.0]


def test_a_turn_may_be_pushed_as_one() -> None:
    connection = Fake([(2, 20.0)])
    work(InPasses(), connection, worker=0, updates=1, config=LoopConfig(push_every="turn"))
    assert [pushed for pushed, _, _ in connection.pushed] == [3000.0]
    assert connection.asked == 0


def test_it_stops_when_told_before_the_next_turn() -> None:
    learner, done = Steady(), list[Progress]()
    work(learner, Fake([None] * 9), worker=0, stop=lambda: len(done) == 2, on_progress=done.append)
    assert learner.turns == 2


def test_no_updates_is_no_turn() -> None:
    learner = Steady()
    assert work(learner, Fake([]), worker=1, updates=0) == Progress(1)
    assert learner.turns == 0


def test_a_push_needs_a_turn() -> None:
    loop = Loop(Steady(), Fake([]), worker=0)
    loop.join()
    with pytest.raises(RuntimeError, match="learn"):
        loop.push()


def test_what_join_raises_comes_out() -> None:
    class Unreachable(Fake):
        def join(self, weights: Parts, timeout_s: float) -> int:
            raise TimeoutError(f"nobody within {timeout_s} s")

    with pytest.raises(TimeoutError, match="within 2"):
        work(Steady(), Unreachable([]), worker=0, config=LoopConfig(join_timeout_s=2))


class Waiting(Fake):
    """Waits cost time on ``now``; a model is here when it says so."""

    def __init__(self, answers: list[tuple[int, float] | None], comes_after_s: float) -> None:
        super().__init__(answers)
        self.now = 0.0
        self.comes_after_s = comes_after_s

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        super().wait(newer_than, timeout_s)
        left = self.comes_after_s - self.now
        self.now += min(left, timeout_s)
        answer = self.answers[len(self.pushed) - 1]
        return answer[0] if answer is not None and left <= timeout_s else None


ROUNDS = LoopConfig(wait_for_model_s=2.0)


def test_in_rounds_a_worker_waits_for_the_model_and_no_longer() -> None:
    connection = Waiting([(2, 7.0)], comes_after_s=0.73)
    learner, (only,) = run(connection, 1, ROUNDS, clock=lambda: connection.now)
    assert connection.now == pytest.approx(0.73)
    assert learner.weights[0][0] == 7.0
    assert only.unanswered == 0
    assert only.seconds_network == pytest.approx(0.73)


def test_a_model_that_does_not_come_in_time_is_counted_and_the_worker_goes_on() -> None:
    connection = Waiting([None, (5, 9.0)], comes_after_s=3.0)
    learner, seen = run(connection, 2, ROUNDS, clock=lambda: connection.now)
    assert [now.unanswered for now in seen] == [1, 1]
    assert connection.now == pytest.approx(3.0)
    assert learner.weights[0][0] == 9.0


def test_who_waits_for_a_model_can_be_stopped() -> None:
    connection = Waiting([None], comes_after_s=99.0)
    learner = Steady()
    last = work(
        learner, connection, worker=0, config=ROUNDS, clock=lambda: connection.now,
        stop=lambda: connection.now > 0.5,
    )  # fmt: skip
    assert 0.5 < connection.now < 0.8
    assert (learner.turns, last.unanswered) == (1, 0)


class Ration:
    """Updates that may be pushed; each wait brings the next number, or the end of the run."""

    def __init__(self, *numbers: int) -> None:
        self.now, *self.later = numbers
        self.ended = False

    def updates(self) -> int:
        return self.now

    def wait(self, timeout_s: float) -> None:
        if self.later:
            self.now = self.later.pop(0)
        else:
            self.ended = True


def test_a_worker_whose_ration_is_used_up_tells_and_waits_in_the_middle_of_its_turn() -> None:
    answers: list[tuple[int, float] | None] = [(version, 1.0) for version in range(2, 11)]
    free, fake = Fake(answers), Fake(answers)
    work(InPasses(), free, worker=3, updates=6)
    ration = Ration(2, 2, 2, 4, 6)
    told: list[Progress] = []
    last = work(
        InPasses(),
        fake,
        worker=3,
        stop=lambda: ration.ended,
        on_progress=told.append,
        ration=ration,
    )
    # It pushes what a worker without a ration pushes: nothing of its turn is lost.
    assert fake.pushed == free.pushed
    assert last.updates == 6
    # It tells of its pushes before it waits, and of each episode once.
    assert [progress.updates for progress in told if progress.pushes_at_s] == [2, 3, 4, 6]
    assert [reward for progress in told for reward in progress.episode_rewards] == [1.0, 2.0] * 3
    assert sum(len(progress.pushes_at_s) for progress in told) == 6


def test_a_worker_that_waits_for_a_ration_ends_when_it_is_told_to() -> None:
    fake, ration = Fake([None] * 9), Ration(0)
    learner = InPasses()
    last = work(learner, fake, worker=3, stop=lambda: ration.ended, ration=ration)
    assert (last.updates, fake.pushed) == (0, [])
    assert (learner.turns, learner.left) == (1, 2)  # it does not go through its other passes
