"""A policy of LeRobot that acts in many environments, and LeRobot's data set writer."""
