"""The scheduler's outer half: patterns, service, runtime, timeline. Decisions are in the core."""
