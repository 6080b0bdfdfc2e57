"""The ``olaf`` program: commands, options and output."""
