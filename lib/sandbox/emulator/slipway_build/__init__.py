"""What a build of the embedded CodeBuild runs: its phases, and stand-ins for the two programs that need more than this machine has."""
