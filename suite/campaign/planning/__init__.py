"""Plan a campaign, and write the files from which a cluster runs it. Starts nothing."""
