"""Namespace of the stub."""
