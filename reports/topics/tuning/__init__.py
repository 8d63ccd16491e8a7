"""What tuned settings gain, and what is learned with them."""
