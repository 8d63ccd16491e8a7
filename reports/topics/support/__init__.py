"""What ran where, when and in which version, from the stored records; and what cannot run."""
