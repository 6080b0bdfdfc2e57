"""Figures and tables of OLAF, each with a file of data and a file of code."""
