"""Numbers as people write and read them: units, defaults, text."""
