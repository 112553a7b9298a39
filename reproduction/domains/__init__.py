"""The domain of the paper that is not in the package: patrols in a park, invented because the records are private."""
