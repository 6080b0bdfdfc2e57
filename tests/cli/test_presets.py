"""Presets: each names settings that there are, and options change them."""

import subprocess
import sys

import pytest

from olaf.errors.usage import ConfigurationError
from olaf.jobs.presets import names, preset, purpose
from olaf.jobs.reading import read_settings


@pytest.mark.parametrize("name", names())
def test_each_preset_is_a_valid_configuration_that_says_what_it_is_for(name: str) -> None:
    settings = read_settings(base=preset(name))
    assert purpose(name).startswith(settings.learner.environment + ":")
    assert len(purpose(name)) <= 100


def test_options_change_a_preset() -> None:
    told = {"train.workers": ("--workers", 2)}
    settings = read_settings(None, told, ["learner.trace=0.9"], base=preset("pendulum"))
    learner = settings.learner.model_dump()
    assert settings.train.workers == 2
    assert (learner["trace"], learner["discount"]) == (0.9, 0.95)


def test_an_unknown_preset_names_the_near_one() -> None:
    with pytest.raises(ConfigurationError, match="did you mean pendulum"):
        preset("pendlum")


def test_the_command_lists_presets_and_takes_one() -> None:
    def olaf(*argv: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "olaf", "train", *argv],
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        )
        return done.stdout

    assert [line.split()[0] for line in olaf("--preset=list").splitlines()] == names()
    printed = olaf("--preset=mountain-car", "--workers=2", "--print-config")
    assert 'environment = "MountainCar-v0"' in printed
    assert "\nworkers = 2\n" in printed
    assert "\nuntil_reward = -120.0\n" in printed
