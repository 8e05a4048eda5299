"""Inlay measured beside its peers, a memory copy and other builds of itself."""
