"""A run folder: its files, and the commands that use them later.

``folder`` makes and finds folders, ``journal`` records events as they occur, ``settings`` reads the
run's settings, ``model`` reads its model, ``evaluation`` and ``exporting`` use the model.
docs/runs.md describes a folder.
"""
