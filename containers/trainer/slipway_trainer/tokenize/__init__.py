"""Data preparation: converts text to token shards, on one or more hosts."""
