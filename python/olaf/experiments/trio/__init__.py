"""Figures of Trio-ML, each with a file of data and a file of code."""
