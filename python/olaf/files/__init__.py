"""Files of a job: models and keys."""
