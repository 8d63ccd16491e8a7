"""Write the pairs of a campaign with Isaac Lab's own benchmark in ``OUT/upstream.json``."""

from suite.campaign.folder import Folder
from suite.campaign.runs import upstream
from suite.campaign.runs.upstream import Pair


def write_all(folder: Folder) -> list[Pair]:
    """Write the file if there are pairs or it exists already; return the pairs of every stored case.

    Raises:
        StoreError: a stored case cannot be read, or the file cannot be written.
    """
    pairs, path = upstream.pairs_of(folder.stored(), folder), folder.root / "upstream.json"
    if pairs or path.exists():
        upstream.write_pairs(pairs, path)
    return pairs
