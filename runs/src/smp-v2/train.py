"""Your SMP v2 script goes here; see containers/examples."""
