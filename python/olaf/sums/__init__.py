"""All workers of a job sum arrays through a switch."""
