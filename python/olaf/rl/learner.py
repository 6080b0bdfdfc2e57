"""The interface between a learner and the loop that talks to the network.

A learner owns its environments and its weights. It computes updates (OLAF §2.1), and its weights
can be overwritten in place. It knows nothing of sockets, switches or servers.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Parts = list[NDArray[np.float32]]

GradientKind = Literal["accumulated", "gradient"]
Device = Literal["auto", "cpu", "cuda"]
Parallel = Literal["off", "processes", "vector"]
OnRefused = Literal["continue", "reset"]
Schedule = Literal["constant", "linear", "cosine"]
Recurrent = Literal["off", "lstm"]
Normalise = Literal["auto", "on", "off"]


class LearnerError(Exception):
    """The learner cannot be made with this configuration; the message says what to do."""


@dataclass(frozen=True)
class LearnerConfig:
    """How a worker collects and learns; the same for all workers of a job."""

    environment: str = "LunarLander-v3"
    """Any id that ``gymnasium.make`` knows. ``module:id`` imports the module first, and
    ``module:Class`` creates an instance of the class. Python also looks in the current folder.
    ``FILE.pkl:Name`` is a class or function that `olaf.train` was given, in the run's folder."""

    environment_options: dict[str, Any] = field(default_factory=dict, hash=False)
    """Arguments of the environment's constructor (``gym.make``, or the class): {"size" = 3}. In
    texts, {index} becomes a number that only this copy of the environment has in the job, and
    {index+9000} adds to it, as for the port of a simulator; {worker} and {copy} are its parts."""

    max_episode_steps: int = 0
    """Cut training episodes after this number of steps, as a time limit does; 0 does not. For
    environments whose episodes do not end by themselves."""

    learner: str = "numpy"
    """``numpy`` (built in), or ``torch`` (needs the extra ``torch``)."""

    module: str = ""
    """For ``torch``: ``module:factory``, a function in a module of the current folder or an
    installed one. It is called with (observations, actions, continuous) and returns an
    ``nn.Module``. ``observations`` is the number of floats, or the shape (height, width, channels)
    of an image. Empty uses the default actor-critic, which has convolutions for images."""

    device: Device = "auto"
    """For ``torch``: device of the network. ``cpu``; ``cuda`` (the workers take the GPUs in turn);
    or ``auto``, where the factory put it. Small networks are faster on the CPU."""

    recurrent: Recurrent = "off"
    """For ``torch`` without ``module``: ``lstm`` gives the network a memory across the steps of an
    episode, for environments that do not show all that matters in each observation."""

    memory: int = 64
    """Units of the memory of ``recurrent``."""

    environments: int = 4
    """Copies of the environment that one worker steps together, so that one matrix product serves
    all."""

    parallel: Parallel = "off"
    """off: the copies step in turn, which is fastest for quick environments. processes: each copy
    has a process of its own and all step at once, for steps of a millisecond or more. vector: the
    environment steps its copies itself (``gym.make_vec``, or ``module:function`` of a
    ``gymnasium.vector.VectorEnv`` or an EnvPool, called with ``num_envs``)."""

    steps_per_update: int = 500
    """Environment steps that are collected for one update, over all copies."""

    episodes_per_update: int = 0
    """If above 0, collect until this number of episodes has ended, instead of a number of steps.
    The paper's workers push at the end of each episode (OLAF §2.1)."""

    hidden: tuple[int, ...] = (40, 40)
    """Widths of the tanh layers: 8-40-40 has 2,205 parameters, which fit one 9,000-byte frame."""

    epochs: int = 4
    """Number of passes over the collected steps."""

    importance_clip: float = 2.0
    """Largest importance of a step that an older policy collected. The importance is the
    probability of its action under the learning model divided by that under the collecting one. A
    worker without others has importance 1."""

    minibatch: int = 64
    """Steps per minibatch of Adam."""

    learning_rate: float = 2e-3
    """Adam's step size in the local epochs; the server's factor is separate."""

    schedule: Schedule = "constant"
    """How ``learning_rate`` goes down to a hundredth: not at all, along a line, or along a half
    cosine. All workers count the environment steps of the whole run, also after a resume."""

    schedule_steps: int | None = None
    """Environment steps of all workers together at which ``schedule`` ends. auto: the run's
    ``train.steps``. A worker that no run started counts its own."""

    gamma: float = 1.0
    """The server's factor (``server.learning_rate``; gamma of OLAF §2.1). A local change is divided
    by it, so that the server applies the whole change with any factor."""

    strength: float = 1.0
    """Fraction of a turn's local change that is pushed and kept. The sum of many workers' full
    steps overshoots; the server's ``staleness_power`` already corrects this. With a server that
    does not scale, use about 2 / workers, see ``docs/training.md``."""

    discount: float = 0.995
    """Discount of rewards per step."""

    trace: float = 0.97
    """Lambda of generalised advantage estimation."""

    clip: float = 0.2
    """PPO's bound on the ratio of probabilities."""

    entropy: float = 0.01
    """Weight of the entropy bonus."""

    value: float = 0.5
    """Weight of the value loss."""

    max_gradient_norm: float = 0.5
    """Largest Euclidean norm of a minibatch gradient; a longer one is scaled down to it."""

    adam_beta1: float = 0.0
    """Decay of Adam's first moment. Stale updates already act like momentum."""

    adam_beta2: float = 0.999
    """Decay of Adam's second moment."""

    reward_scale: float | None = None
    """Factor on rewards before learning; reported rewards are unscaled. None: the environment's
    known scale, or else a running normalisation of the discounted return, see
    ``environments.py``."""

    normalise: Normalise = "auto"
    """Normalise each feature of the observations by the mean and the spread that all workers have
    seen; the model carries them. ``auto``: on if the root mean square of some feature is above 10
    or below 0.02 in the first 256 steps, without being constant; never for images."""

    scales: tuple[float, ...] = ()
    """For ``normalise``: a rough mean and a rough spread of each feature in turn, the same for all
    workers. Empty: measured before the run, in the first 256 steps."""

    log_std: float = 0.0
    """First logarithm of the standard deviation of continuous actions, which range from -1 to 1."""

    gradient_kind: GradientKind = "accumulated"
    """``accumulated``: (w_after - w_before) / gamma after the local epochs. ``gradient``: one raw
    gradient of the PPO objective over the batch, without a local change, as the paper's text
    says."""

    seed: int = 0
    """Random seed of the job; a worker draws from (seed, worker)."""

    @property
    def passes(self) -> int:
        """Passes over the steps of a turn; each may be an update of its own."""
        return 1 if self.gradient_kind == "gradient" else self.epochs

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))  # JSON and TOML have lists
        object.__setattr__(self, "scales", tuple(self.scales))

    @property
    def is_resolved(self) -> bool:
        """True if nothing about ``normalise`` is left to be measured."""
        return self.normalise == "off" or (self.normalise == "on" and bool(self.scales))

    def check(self, given: Collection[str] = ()) -> "LearnerConfig":
        """Return self, or raise ``LearnerError`` with the key and its allowed values.

        given: the keys that the user wrote. None of them may be without effect (`INEFFECTIVE`).
        """
        self._check_ranges()
        choices = {
            "normalise": ("auto", "on", "off"),
            "learner": ("numpy", "torch"),
            "device": ("auto", "cpu", "cuda"),
            "gradient_kind": ("accumulated", "gradient"),
            "parallel": ("off", "processes", "vector"),
            "schedule": ("constant", "linear", "cosine"),
            "recurrent": ("off", "lstm"),
        }
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise LearnerError(f"{key} = {getattr(self, key)!r}: one of {', '.join(allowed)}")
        if self.device == "cuda" and self.learner != "torch":
            raise LearnerError(
                "device = 'cuda': needs learner = 'torch'; the numpy learner has no GPU"
            )
        if self.parallel == "vector" and self.recurrent != "off":
            raise LearnerError(
                "parallel = 'vector' does not go with recurrent = 'lstm': steps that only begin an "
                "episode would be in the sequences; take parallel = processes"
            )
        self._check_effects(given)
        return self

    def _check_ranges(self) -> None:
        positive = (
            "environments steps_per_update epochs minibatch learning_rate gamma strength memory "
            "max_gradient_norm clip importance_clip"
        )
        for key in positive.split():
            if not getattr(self, key) > 0:
                raise LearnerError(f"{key} = {getattr(self, key)}: must be above 0")
        for key in ("discount", "trace"):
            if not 0 <= getattr(self, key) <= 1:
                raise LearnerError(f"{key} = {getattr(self, key)}: must be from 0 to 1")
        for key in ("adam_beta1", "adam_beta2"):
            if not 0 <= getattr(self, key) < 1:
                raise LearnerError(f"{key} = {getattr(self, key)}: must be from 0 to below 1")
        for key in ("episodes_per_update", "max_episode_steps"):
            if getattr(self, key) < 0:
                raise LearnerError(f"{key} = {getattr(self, key)}: 0 is off")
        if not self.hidden or min(self.hidden) < 1:
            raise LearnerError(f"hidden = {self.hidden}: one width above 0 for each layer")
        for key in ("reward_scale", "schedule_steps"):
            value = getattr(self, key)
            if value is not None and not value > 0:
                raise LearnerError(f"{key} = {value}: must be above 0, or auto")
        self._check_scales()

    def _check_effects(self, given: Collection[str]) -> None:
        """Raise ``LearnerError`` for a key that another key makes useless."""
        default = LearnerConfig()
        for keys, other, is_useless, mend in INEFFECTIVE:
            if not is_useless(self):
                continue
            for key in keys:
                value = getattr(self, key)
                if value != getattr(default, key) and (key in given or key in ALWAYS_GIVEN):
                    raise LearnerError(
                        f"{key} = {value!r} has no effect with {other} = "
                        f"{getattr(self, other)!r}: {mend}, or leave {key} out"
                    )

    def _check_scales(self) -> None:
        if len(self.scales) % 2 or not all(0 < scale < np.inf for scale in self.scales[1::2]):
            raise LearnerError(
                f"scales = {self.scales}: a mean and a spread above 0 for each feature"
            )

    def replaced(self, **changes: object) -> "LearnerConfig":
        """A checked copy with ``changes``."""
        return dataclasses.replace(self, **changes).check()  # type: ignore[arg-type]


INEFFECTIVE: tuple[tuple[tuple[str, ...], str, Callable[[LearnerConfig], bool], str], ...] = (
    (("module", "recurrent"), "learner", lambda of: of.learner != "torch", "set learner to torch"),
    (
        ("recurrent",),
        "module",
        lambda of: bool(of.module),
        "a network of your own is called without a memory; take the default one",
    ),
    (("memory",), "recurrent", lambda of: of.recurrent == "off", "set recurrent to lstm"),
    (
        ("schedule_steps",),
        "schedule",
        lambda of: of.schedule == "constant",
        "set schedule to linear or cosine",
    ),
    (("hidden", "log_std"), "module", lambda of: bool(of.module), "choose it in your network"),
    (
        ("steps_per_update",),
        "episodes_per_update",
        lambda of: of.episodes_per_update > 0,
        "set episodes_per_update to 0",
    ),
    (
        (
            "epochs",
            "minibatch",
            "learning_rate",
            "schedule",
            "strength",
            "max_gradient_norm",
            "adam_beta1",
            "adam_beta2",
        ),
        "gradient_kind",
        lambda of: of.gradient_kind == "gradient",
        "set gradient_kind to accumulated",
    ),
)
"""Keys, another key, when the other key makes them useless, and what to do about it."""

ALWAYS_GIVEN = ("module", "recurrent", "memory", "schedule_steps")
"""Keys that are off by default: whoever sets them wants their effect."""


@dataclass(frozen=True)
class Iteration:
    """One turn of a learner: the experience, the update, and the moved weights."""

    update: Parts
    """g in w += gamma g; float32, same shapes as ``Learner.parts()``. The arrays are the learner's
    own buffers, valid until the next ``learn``."""

    gamma: float
    """The factor in w += gamma g."""

    reward: float
    """Mean reward of the episodes that ended in this turn; if none did, of those that ended last;
    before the first end, the mean reward so far of the running ones."""

    steps: int
    """Environment steps taken. If a turn is learnt in several calls, its steps, episodes and
    ``seconds_env`` are in the first call's iteration."""

    episode_rewards: tuple[float, ...]
    """Undiscounted, unscaled rewards of the episodes that ended, in order."""

    seconds_env: float
    """Seconds of collecting (environment and acting), by the learner's clock."""

    seconds_learn: float
    """Seconds of computing the update, by the learner's clock."""

    passes: int = 1
    """Passes over the turn's steps in this update."""

    is_last: bool = True
    """True if the turn has no pass left."""

    episode_steps: tuple[int, ...] = ()
    """Steps of these episodes."""

    episode_numbers: tuple[dict[str, float], ...] = ()
    """Numbers of the last ``info`` of these episodes, such as ``success``."""

    losses: dict[str, float] = field(default_factory=dict)
    """Means over the last epoch: ``policy``, ``value``, ``entropy``, ``kl`` (approximate, from the
    policy that the epoch began with), ``clipped`` (share of the steps outside PPO's bound), and
    ``gradient_norm`` (before its limit). Of the whole turn: ``explained_variance`` (of the value
    head on the returns). ``learning_rate`` is Adam's now; it is missing if no Adam runs
    (``gradient_kind``)."""

    @property
    def episodes(self) -> int:
        """Number of episodes that ended."""
        return len(self.episode_rewards)


@runtime_checkable
class Learner(Protocol):
    """A worker's learner (OLAF §2.1)."""

    steps_of_run: Callable[[], int]
    """Environment steps of all workers so far, for the schedule of the learning rate; may be set. A
    learner that nobody tells of others counts its own."""

    @property
    def parameters(self) -> int:
        """Number of floats of the model."""

    def parts(self) -> Parts:
        """Return the live weights, contiguous float32 arrays in a fixed order.

        Writing into them changes the policy at once, without another call.
        """

    def collect(self) -> int:
        """Run the policy in the environments for one turn; return the environment steps."""

    def learn(self, passes: int | None = None) -> Iteration:
        """Learn from the collected turn; the weights have then moved by gamma x update.

        passes: number of passes over the turn's steps to make now; None makes all that are left.
        A newer model may have replaced the weights before a call. The steps then come from an older
        policy, and are weighted by their importance for the newer one.
        With ``gradient_kind = gradient`` the weights do not change, and a turn is one pass.
        Raises ``RuntimeError`` if no turn is collected, or no pass of it is left.
        """

    def iterate(self) -> Iteration:
        """`collect`, then `learn`: a whole turn."""

    def close(self) -> None:
        """Close the environments. The weights can still be read."""


def named_parts(learner: Learner) -> dict[str, NDArray[np.float32]]:
    """The live weights of a learner by name, in the order of its `parts`, as views.

    A learner without names gets ``part_0``, ``part_1``, ..
    """
    names = getattr(learner, "named_parts", None)
    if names is not None:
        named: dict[str, NDArray[np.float32]] = names()
        return named
    return {f"part_{index}": part for index, part in enumerate(learner.parts())}


def layout_of(learner: Learner) -> str:
    """Names and shapes of a learner's arrays, as ``_olaf.Client.join`` takes them."""
    arrays = named_parts(learner).items()
    return json.dumps([{"name": name, "shape": list(part.shape)} for name, part in arrays])


def check_finite(update: Parts, learner: Learner) -> None:
    """Raise ``LearnerError`` if an update is not finite; the message names the array."""
    if all(math.isfinite(float(np.vdot(part, part))) for part in update):
        return
    flat = np.concatenate([part.ravel() for part in update])
    if np.isfinite(flat).all():  # only so large that the sum of its squares is not
        return
    named = list(named_parts(learner).items())
    ends = np.cumsum([array.size for _, array in named])
    first = int(np.flatnonzero(~np.isfinite(flat))[0])
    name = named[int(np.searchsorted(ends, first, side="right"))][0]
    rate = getattr(getattr(learner, "config", None), "learning_rate", None)
    raise LearnerError(
        f"learning went wrong: the update of {name!r} is not finite, and is not sent. A reward or "
        "an observation may be huge (learner.normalise = on, learner.reward_scale), or the step "
        f"too long (learner.learning_rate, now {rate:g})"
    )
