"""Figures of ATP, each with a file of data and a file of code."""
