"""The search for the release of a package with which a case became slower."""
