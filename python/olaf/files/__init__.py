"""Files of a job: checkpoints, models, keys."""
