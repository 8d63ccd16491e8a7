"""What every rank does, whichever library trains: process group, simulation, clock, log and settings."""
