"""`olaf evaluate`: greedy, repeatable, against a threshold, in a window or as a film."""

import json
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from small_runs import LOCAL, Olaf, apart

from olaf.rl.learner import LearnerConfig
from olaf.rl.making import make_learner
from olaf.runs.evaluation import Episode, Score, against, play, score


def test_the_same_seed_gives_the_same_episodes_however_many_are_played(trained: Olaf) -> None:
    few = trained.json("evaluate", "runs/latest", "--episodes=5", "--seed=7")
    more = trained.json("evaluate", "runs/latest", "--episodes=40", "--seed=7")
    later = trained.json("evaluate", "runs/latest", "--episodes=5", "--seed=9")
    assert more["rewards"][:5] == few["rewards"]
    assert later["rewards"][:3] == few["rewards"][2:]
    assert more["mean"] == pytest.approx(np.mean(more["rewards"]))
    assert more["std"] == pytest.approx(np.std(more["rewards"], ddof=1))
    assert (more["min"], more["max"]) == (min(more["rewards"]), max(more["rewards"]))
    assert more["low"] <= more["mean"] <= more["high"]
    assert few["low"] is None  # five episodes are no interval
    assert more["version"] == 13
    assert more["threshold"] == 475.0


def test_it_says_what_it_found_in_sentences(trained: Olaf) -> None:
    said = trained("evaluate", "runs/latest", "--episodes=20").stdout
    assert "CartPole-v1, model version 13 of runs/" in said
    assert "with 95 % confidence" in said
    assert "475" in said


def test_exit_codes_say_whether_the_reward_is_reached(trained: Olaf) -> None:
    play = ("evaluate", "runs/latest", "--episodes=10")
    assert trained.json(*play, "--at-least=5")["reached"] is True
    assert trained.json(*play, "--at-least=100000", code=1)["reached"] is False
    trained(*play, "--at-least=much", code=2)


def test_a_checkpoint_file_can_be_played_where_no_run_is(trained: Olaf, tmp_path: Path) -> None:
    lone = tmp_path / "lone.npz"
    lone.write_bytes((trained.folder / "runs" / "latest" / "model.npz").read_bytes())
    own = trained.json("evaluate", "runs/latest", "--episodes=3")
    played = trained.json("evaluate", str(lone), "--env=CartPole-v1", "--episodes=3")
    assert played["rewards"] == own["rewards"]
    wrong = trained("evaluate", str(lone), "--env=Acrobot-v1", code=2)
    assert "parameters" in wrong.stderr


def test_a_flat_model_of_an_older_version_is_read(trained: Olaf, tmp_path: Path) -> None:
    from olaf import checkpoint

    saved = checkpoint.load(trained.folder / "runs" / "latest" / "model.npz")
    np.savez(tmp_path / "old.npz", version=13, parameters=saved.parameters)
    own = trained.json("evaluate", "runs/latest", "--episodes=3")
    old = trained.json("evaluate", str(tmp_path / "old.npz"), "--env=CartPole-v1", "--episodes=3")
    assert old["rewards"] == own["rewards"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("no archive", "not a checkpoint"), ("", "damaged or cut short")],
)
def test_a_broken_model_is_named(olaf: Olaf, text: str, complaint: str) -> None:
    (olaf.folder / "broken.npz").write_text(text)
    said = olaf("evaluate", "broken.npz", "--env=CartPole-v1", code=2).stderr
    assert "broken.npz" in said
    assert complaint in said


def test_what_is_no_run_is_said(olaf: Olaf) -> None:
    assert "no such run" in olaf("evaluate", "runs/latest", code=2).stderr
    assert "holds no run" in olaf("evaluate", ".", code=2).stderr
    (olaf.folder / "compare.json").write_text("{}")
    (olaf.folder / "olaf-seed0").mkdir()
    (olaf.folder / "olaf-seed0" / "run.json").write_text("{}")
    said = olaf("evaluate", ".", code=2).stderr
    assert "name one of its runs: olaf-seed0" in said


@pytest.mark.slow
def test_a_film_decodes_and_shows_what_was_played(trained: Olaf, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "film.mp4"
    found = trained.json("evaluate", "runs/latest", f"--video={file}", "--episodes=2")
    pictures = imageio_ffmpeg.read_frames(str(file))
    about = next(pictures)
    assert about["codec"] == "h264"
    width, height = about["size"]
    decoded = [np.frombuffer(one, np.uint8).reshape(height, width, 3) for one in pictures]
    # One picture for each state: one more than steps in each episode.
    plain = trained.json("evaluate", "runs/latest", "--episodes=2")
    assert found["rewards"] == plain["rewards"]
    assert len(decoded) == sum(plain["rewards"]) + 2
    assert np.abs(decoded[0].astype(int) - decoded[-1]).max() > 100  # something moves
    assert list(tmp_path.glob("deep/*")) == [file]  # no half film is left


def test_a_film_needs_its_ending_and_one_of_window_and_film(trained: Olaf) -> None:
    said = trained("evaluate", "runs/latest", "--video=film.avi", code=2).stderr
    assert "ends with .mp4" in said
    said = trained("evaluate", "runs/latest", "--video=a.mp4", "--render", code=2).stderr
    assert "exclude each other" in said


def test_without_a_display_a_window_is_refused_and_a_film_offered(trained: Olaf) -> None:
    none = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "SDL_VIDEODRIVER": ""}
    said = trained("evaluate", "runs/latest", "--render", code=2, **none).stderr
    assert "no display" in said
    assert "--video" in said


@pytest.mark.slow
def test_with_a_display_the_episodes_are_shown(trained: Olaf) -> None:
    # Apart: what draws may load an LLVM of the system, and torch's own bears no second one.
    done = apart(
        trained.folder, "evaluate", "runs/latest", "--render", "--episodes=1", "--json",
        SDL_VIDEODRIVER="offscreen",
    )  # fmt: skip
    plain = trained.json("evaluate", "runs/latest", "--episodes=1")
    assert json.loads(done.stdout)["rewards"] == plain["rewards"]


OWN = """
import gymnasium, numpy as np
from gymnasium import spaces

class Line(gymnasium.Env):
    '''Reward 1 for going up; ends after ten steps.'''
    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space = spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 10
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), {}

    def step(self, action):
        assert action in (5, 6)
        self.left -= 1
        seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return seen, float(action == 6), False, self.left == 0, {}
"""


@pytest.mark.slow
def test_an_environment_of_ones_own_is_trained_and_evaluated(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    train = [text for text in LOCAL if not text.startswith("--env")]
    apart(tmp_path, *train, "--env=mine:Line", "--updates=25")
    found = json.loads(apart(tmp_path, "evaluate", "runs/latest", "--episodes=20", "--json").stdout)
    assert found["mean"] > 8  # it has learnt to go up
    assert found["threshold"] is None
    said = apart(tmp_path, "evaluate", "runs/latest", "--video=a.mp4", code=2).stderr
    assert "mine:Line" in said  # it cannot be drawn


def test_a_score_is_what_statistics_say() -> None:
    episodes = [Episode(seed, float(reward), 10) for seed, reward in enumerate(range(100))]
    found = score(episodes)
    assert (found.mean, found.min, found.max, found.steps_mean) == (49.5, 0.0, 99.0, 10.0)
    assert found.std == pytest.approx(29.01, abs=0.01)
    assert found.low is not None
    assert found.high is not None
    # The normal interval: 49.5 -+ 1.96 * 29.01 / 10.
    assert found.low == pytest.approx(43.81, abs=0.4)
    assert found.high == pytest.approx(55.19, abs=0.4)
    assert score(episodes) == found
    assert json.dumps(found.to_json())


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (201.0, 220.0, "above 200, with 95 % confidence"),
        (150.0, 199.0, "below 200, with 95 % confidence"),
        (190.0, 220.0, "above 200, but 30 episodes cannot settle it: play more"),
        (None, None, "above 200, but 30 episodes cannot settle it: play more"),
    ],
)
def test_a_threshold_is_judged_by_the_interval(
    low: float | None, high: float | None, words: str
) -> None:
    middle = 205.0 if low is None else (low + (high or 0.0)) / 2
    found = Score(30, middle, 10.0, 0.0, 300.0, low, high, 100.0)
    assert against(200.0, found) == words


def test_an_episode_that_does_not_end_is_cut_and_says_so() -> None:
    learner = make_learner(LearnerConfig(environment="MountainCar-v0", environments=1))
    episodes = list(play(learner, "MountainCar-v0", episodes=3, seed=0, most_steps=25))
    assert [episode.steps for episode in episodes] == [25] * 3
    assert all(episode.is_cut for episode in episodes)
    (whole,) = play(learner, "MountainCar-v0", episodes=1, seed=0, most_steps=200)
    assert (whole.steps, whole.is_cut) == (200, False)


def test_sampled_episodes_are_other_ones_than_the_greedy_ones_and_repeatable() -> None:
    learner = make_learner(LearnerConfig(environment="CartPole-v1", environments=1))

    def rewards(**how: bool) -> list[float]:
        return [e.reward for e in play(learner, "CartPole-v1", episodes=5, seed=3, **how)]

    assert rewards(is_sampled=True) == rewards(is_sampled=True)
    assert rewards(is_sampled=True) != rewards()


ENDLESS = """
import gymnasium as gym, numpy as np
class Endless(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)
    def __init__(self, reward=1.0):
        self.reward = reward
    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}
    def step(self, action):
        return np.zeros(1, np.float32), self.reward, False, False, {}
"""


def test_an_environment_that_never_ends_is_cut_with_a_sentence(olaf: Olaf) -> None:
    (olaf.folder / "endless_for_evaluate.py").write_text(ENDLESS)
    learner = ("--env=endless_for_evaluate:Endless", "--set=learner.steps_per_update=40")
    olaf("train", "--local", "--updates=8", *learner)
    told = ("evaluate", "runs/latest", "--episodes=3", "--max-steps=30")
    found = olaf.json(*told)
    assert (found["mean"], found["cut"], found["max_steps"]) == (30.0, 3, 30)
    assert "3 episodes had not ended after 30 steps" in olaf(*told).stdout


def test_options_of_the_constructor_are_kept_and_can_be_changed(olaf: Olaf) -> None:
    (olaf.folder / "options_for_evaluate.py").write_text(ENDLESS)
    how = ("--env=options_for_evaluate:Endless", "--set=learner.max_episode_steps=10")
    olaf("train", "--local", "--updates=8", "--env-option", "reward=0.5", *how)
    told = ("evaluate", "runs/latest", "--episodes=2", "--max-steps=30")
    assert olaf.json(*told)["mean"] == 15
    assert olaf.json(*told, "--env-option=reward=2")["mean"] == 60
    assert "write it name=value" in olaf(*told, "--env-option=reward", code=2).stderr
