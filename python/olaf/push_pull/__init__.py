"""A worker's end of a job: it pushes updates and pulls models."""
