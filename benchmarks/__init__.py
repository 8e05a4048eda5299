"""Benchmarks that compare Inlay with other libraries, a memory copy and other builds of itself."""
