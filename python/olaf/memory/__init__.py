"""A caller's arrays and tensors as memory that the core reads and writes."""
