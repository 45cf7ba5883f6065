"""Your preparation script goes here."""
