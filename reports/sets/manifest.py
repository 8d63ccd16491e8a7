"""``report.toml`` of a version: the order of its sets, their titles, what they are for, and whose they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from suite.errors import MatrixError, ReportError
from suite.files.toml_file import TomlTable, Tuple, read_toml

MANIFEST: Final = "report.toml"

# scaling: its series are shown on the pages of tasks. clock: was made to compare labscale's clock with upstream's, and
# is shown there.
# turns: was made to compare rounds in turns with rounds alone, and is shown there.
# learning: was made to see what a seed learns, and is shown there. archive: lacks evidence that other sets have, so its
# figures are shown on the page of the data, which says what is missing.
type Role = Literal["scaling", "clock", "turns", "learning", "archive"]
# Whether other runs used the machine at the same time: such times say nothing of how fast the machine is.
type SharedMachine = Literal["no", "yes", "unknown"]
type _Text = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Contributor:
    """Who measured a set that is not the project's own."""

    name: str
    link: str | None = None
    citation: str | None = None


class Entry(TomlTable):
    """One ``[[set]]``."""

    folder: _Text
    title: _Text | None = None
    role: Role = "scaling"
    shared_machine: SharedMachine = "no"
    contributed_by: _Text | None = None
    link: Annotated[str, Field(pattern=r"^https://\S+$")] | None = None
    citation: _Text | None = None
    witness: Annotated[str, Field(pattern=r"^https://\S+$")] | None = None  # has a hash of the run log, with a date

    @property
    def contributor(self) -> Contributor | None:
        if self.contributed_by is None:
            return None
        return Contributor(name=self.contributed_by, link=self.link, citation=self.citation)

    @property
    def full_title(self) -> str:
        """Names the contributor, so that the set is theirs wherever its title stands."""
        title = self.title or self.folder
        return title if self.contributed_by is None else f"{title}, contributed by {self.contributed_by}"


class _Manifest(TomlTable):
    set: Tuple[Entry] = ()


def read_manifest(folder: Path, names: Sequence[str]) -> list[Entry]:
    """The entries in their order, then one for each set of ``names`` that the file does not have.

    Raises ReportError when the file is wrong, with every line that is.
    """
    path = folder / MANIFEST
    entries: Sequence[Entry] = ()
    if path.is_file():
        try:
            entries = read_toml(path).validate(_Manifest).set
        except MatrixError as error:
            raise ReportError(str(error)) from None
    listed = [entry.folder for entry in entries]
    unknown = sorted(set(listed) - set(names))
    if unknown or len(listed) != len(set(listed)):
        raise ReportError(f"{path} names {', '.join(unknown) or 'a folder twice'}; there are {', '.join(names)}.")
    for entry in entries:
        if entry.contributed_by is None and (entry.link or entry.citation):
            raise ReportError(
                f"{path}: the set {entry.folder} has a link or a citation but no contributed_by, so it would be shown"
                " as the project's own. Add contributed_by, the name of who measured it."
            )
    return [*entries, *(Entry(folder=name) for name in names if name not in listed)]
