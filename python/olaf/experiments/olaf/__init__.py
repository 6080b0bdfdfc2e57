"""Figures and tables of OLAF, a file of data and a file of code each."""
