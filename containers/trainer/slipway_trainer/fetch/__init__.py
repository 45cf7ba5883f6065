"""Fetches models and data sets of a hub into S3."""
