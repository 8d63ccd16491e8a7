"""A ReFrame test made of measured cases, for a cluster's acceptance suite. Pure: rows in, a Python file out."""

import json
from collections.abc import Sequence
from string import Template
from typing import Final

from reports.analysis import CaseRow

# An accepted system may be this much slower; being faster is never a failure.
ALLOWED_LOSS: Final = 0.10

_TEST: Final = Template('''"""labscale as a ReFrame test. References were measured on $where.

Made by `nox -s export -- RESULTS --format reframe`. Run it in a checkout of labscale, whose path is in LABSCALE:

    LABSCALE=~/labscale reframe -C your_system.py -c labscale_reframe.py --run
"""

import json
import os
import pathlib

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, run_before, sanity_function

# case id -> frames per second that were measured
REFERENCES = $references
ALLOWED_LOSS = $allowed_loss


@rfm.simple_test
class LabscaleCase(rfm.RunOnlyRegressionTest):
    """One case: train it, and compare its frames per second with the reference."""

    descr = "Training throughput of NVIDIA Isaac Lab"
    case_id = parameter(sorted(REFERENCES))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "python3"
    time_limit = "2h"

    @run_after("init")
    def name_tags(self):
        self.tags = {self.case_id.split("/")[0], "labscale"}

    @run_before("run")
    def set_command(self):
        checkout = os.environ.get("LABSCALE", ".")
        out = os.path.join(self.stagedir, "campaign")
        noxfile = os.path.join(checkout, "noxfile.py")
        figures = os.path.join(self.stagedir, "figures.json")
        nox = ["-m", "nox", "--noxfile", noxfile]
        case = ["--matrix", "full", "--case", f"'{self.case_id}'"]
        self.executable_opts = [*nox, "-s", "bench", "--", *case, "--out", out]
        export = ["-s", "export", "--", out, "--format", "bencher", "--out", figures]
        self.postrun_cmds = [" ".join(["python3", *nox, *export])]
        self.reference = {"*": {"total_fps": (REFERENCES[self.case_id], -ALLOWED_LOSS, None, "frames/s")}}

    @sanity_function
    def completed(self):
        return sn.assert_true(pathlib.Path(self.stagedir, "figures.json").is_file(), msg="the case did not complete")

    @performance_function("frames/s")
    def total_fps(self):
        figures = json.loads(pathlib.Path(self.stagedir, "figures.json").read_text())
        return figures[self.case_id]["total-fps"]["value"]
''')


def render(rows: Sequence[CaseRow], *, where: str) -> str:
    """One parametrised test of every case that was measured."""
    references = {row.case_id: round(row.total_fps) for row in rows if row.total_fps is not None}
    return _TEST.substitute(
        where=where.replace('"', "'"), references=json.dumps(references, indent=4), allowed_loss=repr(ALLOWED_LOSS)
    )
