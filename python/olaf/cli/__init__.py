"""The ``olaf`` program: what a person types, and what comes back."""
