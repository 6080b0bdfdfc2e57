"""Figures and tables of iSwitch, each with a file of data and a file of code.

`rtl_vectors` runs gradient vectors through the verilated accelerator.
"""
