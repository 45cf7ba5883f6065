"""Sharded checkpoints that exist only once they are complete."""
