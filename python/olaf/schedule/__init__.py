"""The Python half of the scheduler: patterns, service, runtime, timeline. The core decides."""
