"""Sharded checkpoints that become visible only when they are complete."""
