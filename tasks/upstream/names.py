"""What Isaac Lab calls an RL library. Imports no torch."""

from suite.schema.record import RlLibrary


def upstreams_name(library: RlLibrary) -> str:
    """Name under which agents are registered and bundles written; skrl with torch and with JAX have one."""
    return "skrl" if library == "skrl_jax" else library
