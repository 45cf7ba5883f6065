"""Your script goes here; see containers/examples."""
