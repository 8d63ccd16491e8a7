"""What other versions of packages change in speed and starts."""
