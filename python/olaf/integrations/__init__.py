"""Olaf in existing training frameworks.

- ``olaf.integrations.sb3``: a callback for Stable-Baselines3, and `distribute`: each optimizer
  step of a model applies the mean gradient of all workers;
- ``olaf.integrations.rllib``: a learner for RLlib's new API stack;
- ``olaf.integrations.lightning``: a callback for Lightning.

Each needs one or two lines in an existing program. The framework collects, computes losses and
keeps its optimiser. Olaf sends the change of the model and brings the job's model. See
``docs/integrations.md``. Import each module by its name, since each needs its framework.
"""
