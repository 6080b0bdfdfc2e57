"""Olaf in the frameworks that people already train with.

- ``olaf.integrations.sb3``: a callback for Stable-Baselines3;
- ``olaf.integrations.rllib``: a learner for RLlib's new API stack;
- ``olaf.integrations.lightning``: a callback for Lightning.

Each is one or two lines in a program that exists. The framework collects, computes losses and keeps
its optimiser; Olaf carries what training changed, and brings the job's model. See
``docs/integrations.md``. Each module is imported by name, because each needs its framework.
"""
