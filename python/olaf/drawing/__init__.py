"""Plots and bars, for whatever has numbers to show: nothing here knows what they mean."""
