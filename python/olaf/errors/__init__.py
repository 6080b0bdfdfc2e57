"""How a command ends, and what Olaf tells a person."""
