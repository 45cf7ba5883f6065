"""Your Megatron entry point goes here; see containers/examples."""
