"""The commands of an embedded CodeBuild build: its phases, and substitutes for the two programs that need more than this machine has."""
