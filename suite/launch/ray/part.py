"""One node's part of a round on a Ray cluster."""

from typing import Final

from suite.errors import SchedulerError
from suite.external.ray_cluster import NodeProgram
from suite.files.wording import last_words
from suite.launch.nodes.part import Part

MODULE: Final = "suite.launch.nodes.agent"


class RayPart(Part):
    """The part of a node, whose agent a process of Ray starts."""

    def __init__(self, program: NodeProgram) -> None:
        super().__init__(program.address, address=program.address)
        self._program = program
        self._ray_said: str | None = None  # why the connection ended

    @property
    def advice(self) -> str:
        return f"`ray status` must show {self.host}, and the checkout and its Python must be in the same folders there."

    def hear(self) -> None:
        try:
            for line in self._program.read() if self.is_going_on else ():
                self._lines.put(line)
        except SchedulerError as error:
            self._ray_said = str(error)
            self._lines.put(None)
        super().hear()

    def _send(self, line: str) -> None:
        self._program.write(line)

    def _last_words(self) -> str:
        return last_words(self._ray_said or self._last_said)

    def _close(self) -> None:
        self._program.close()
