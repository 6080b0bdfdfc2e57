"""Figures and tables of MINA, each with a file of data and a file of code.

`data` selects the patterns and job lists, `measuring` runs the simulator.
"""
