"""*Data*: how many files are stored of each set, of imported bundles and of env_check, and how many bytes they have.

What env_check printed beside the sets has no samples, so it is not counted with them. The hashes of a set are no such
file, since they are written last; nor are the tables and lists that lie beside the sets of a version.
"""

from pathlib import Path

from reports.verification.finding import Json
from reports.verification.hashes import SIGNATURE, SUMS
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    found = {folder.name: _bytes_of(folder) for folder in (*(one.folder for one in version.sets), *version.imported)}
    every = [size for sizes in found.values() for size in sizes.values()]
    over_all = {"sets": len(version.sets), "imported": len(version.imported), "files": len(every), "bytes": sum(every)}
    found |= {folder.name: _bytes_of(folder) for folder in {path.parent for path in version.env_checks}}
    return {"all": over_all} | {
        name: {"files": len(sizes), "bytes": sum(sizes.values()), "bytes_of": sizes} for name, sizes in found.items()
    }


def _bytes_of(folder: Path) -> dict[str, int]:
    """Return the size of each file by its name below the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in {SUMS, SIGNATURE})
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths}
