"""Tests of the bridge to Paddle."""
