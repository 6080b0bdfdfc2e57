"""What a run leaves behind: tables, plots, a page, TensorBoard scalars."""
