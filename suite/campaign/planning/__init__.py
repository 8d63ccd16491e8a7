"""The plan of a campaign, and the files from which a cluster runs it. Starts nothing."""
