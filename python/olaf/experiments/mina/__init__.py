"""Figures and tables of MINA, a file of data and a file of code each.

`data` says which patterns and job lists they are measured with, `measuring` runs the simulator.
"""
