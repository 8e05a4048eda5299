"""Inlay beside its peers and beside the memory's limit: ``make bench``."""
