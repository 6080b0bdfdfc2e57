"""Checks and runs the part of P4-16 that `p4/` uses. It is a tool for tests, and no P4 compiler."""

from .check import Checked, check
from .run import V1Model, Vitis
from .syntax import P4Error, read

__all__ = ["Checked", "P4Error", "V1Model", "Vitis", "check", "read"]
