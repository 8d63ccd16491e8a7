"""Write the pairs of a campaign: repeat measurements in ``OUT/noise.json``, upstream in ``OUT/upstream.json``.

The files cover every stored case, also those that earlier commands ran.
"""

from suite.campaign.folder import Folder
from suite.campaign.runs import upstream
from suite.campaign.runs.upstream import Pair
from suite.statistics.aa_noise import TwinPair, twin_pairs, write_noise


def write_all(folder: Folder) -> tuple[tuple[TwinPair, ...], list[Pair]]:
    """Write each file that has pairs or exists already; return the pairs of both.

    Raises:
        StoreError: a stored case cannot be read, or a file cannot be written.
    """
    results = folder.stored()
    twins, pairs = twin_pairs(results), upstream.pairs_of(results, folder)
    noise_path, upstream_path = folder.root / "noise.json", folder.root / "upstream.json"
    if twins or noise_path.exists():
        write_noise(twins, noise_path)
    if pairs or upstream_path.exists():
        upstream.write_pairs(pairs, upstream_path)
    return twins, pairs
