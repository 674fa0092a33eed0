"""Tests of decisions without I/O."""
