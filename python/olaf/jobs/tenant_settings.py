"""A job in the list of those that a switch or a server serves."""

from __future__ import annotations

from pydantic import Field

from olaf.jobs.fields import OffInt, OffText
from olaf.jobs.section import Section


class TenantSettings(Section):
    """A job that is served: its key, and what it may take. off limits nothing."""

    job: int = Field(ge=0)
    """Number of the job."""
    key_file: OffText = None
    """File with its key, which is good for no other job."""
    max_parameters: OffInt = Field(default=None, ge=1)
    """Most parameters of its model."""
    max_workers: OffInt = Field(default=None, ge=1)
    """Most workers at once."""
    max_clusters: OffInt = Field(default=None, ge=1)
    """Most clusters at once."""
    share: OffInt = Field(default=None, ge=1, le=1000)
    """Its share of the switch's links and slots, as in `switch.shares`. A server has none."""
    slots: OffInt = Field(default=None, ge=1)
    """Slots of the switch that are its own: it takes no more. A server has none."""
