"""A run folder: what a training leaves, and what can be made of it later.

``folder`` makes and finds folders, ``journal`` keeps what happened while it happens, ``settings``
reads what a run was told, ``model`` reads what it learnt, ``evaluation`` and ``exporting`` use it.
docs/runs.md tells the story of a folder.
"""
