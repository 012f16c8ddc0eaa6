"""The map, its boxes and its wires under one import name: the files at the root, linked here."""
