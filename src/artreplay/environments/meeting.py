"""What can come of looking at a unit that is to be played, beside AGAIN; below what can come of a step."""

NOT_A_UNIT = -20  # the environment does not have it
NEEDS_MEANS = -21  # Python is to work out the mean rewards of points
