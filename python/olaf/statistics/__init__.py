"""Statistics over a few seeds."""
