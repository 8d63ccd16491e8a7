"""Results of a finished campaign become a set of a version, with the text of a pull request."""
