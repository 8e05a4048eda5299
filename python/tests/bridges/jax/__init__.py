"""Tests of the bridge to JAX."""
