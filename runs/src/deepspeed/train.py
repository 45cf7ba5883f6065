"""Your DeepSpeed script goes here; see containers/examples."""
