"""The output of a run: tables, plots, a page, TensorBoard scalars."""
