"""Your SMP v1 script goes here; see containers/examples."""
