"""What every rank does whatever trains: its process group, simulation, clock, log and checks."""
