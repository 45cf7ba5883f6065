"""Starts training on every instance of a SageMaker job. Standard library only, Python 3.8 and later."""
