"""A ReFrame test made of measured cases, for a cluster's acceptance suite. Pure: references in, a Python file out."""

import json
from collections.abc import Mapping
from string import Template
from typing import Final

# An accepted system may be this much slower; being faster is never a failure.
ALLOWED_LOSS: Final = 0.10

_TEST: Final = Template('''"""labscale as a ReFrame test. References were measured on $where.

Made by `nox -s export -- RESULTS --format reframe`. It needs nox (`python3 -m pip install 'nox[uv]'`), a checkout of
labscale whose path is in LABSCALE, and `_rfm_gpu` among the partition's resources where a scheduler hands out GPUs:

    LABSCALE=~/labscale reframe -C your_system.py -c labscale_reframe.py --exec-policy serial --run -S runs=3

Serial, because configurations beside each other on one node would be slower. Those of several nodes are left out: they
need labscale's own launchers.
"""

import json
import os
import pathlib
import shlex

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, run_before, sanity_function, variable

# configuration -> frames per second that were measured, and on how many GPUs
REFERENCES = $references
MATRIX = $matrix
ALLOWED_LOSS = $allowed_loss


@rfm.simple_test
class LabscaleConfiguration(rfm.RunOnlyRegressionTest):
    """One configuration: train it, and compare its frames per second with the reference."""

    descr = "Training throughput of NVIDIA Isaac Lab"
    configuration = parameter(sorted(REFERENCES))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "python3"
    time_limit = "2h"
    exclusive_access = True
    runs = variable(int, value=3)  # their mean is compared

    @run_after("init")
    def name_tags(self):
        self.tags = {self.configuration.split("/")[0], "labscale"}

    @run_after("init")
    def ask_for_gpus(self):
        if REFERENCES[self.configuration]["gpus"]:
            self.num_gpus_per_node = REFERENCES[self.configuration]["gpus"]

    @run_before("run")
    def set_command(self):
        checkout = os.path.abspath(os.path.expanduser(os.environ.get("LABSCALE", ".")))
        out = os.path.join(self.stagedir, "campaign")
        figures = os.path.join(self.stagedir, "figures.json")
        nox = ["-m", "nox", "--noxfile", os.path.join(checkout, "noxfile.py")]
        case = ["--matrix", MATRIX, "--case", self.configuration, "--repeats", str(self.runs)]
        bench = [*nox, "-s", "bench", "--", *case, "--out", out]
        self.executable_opts = [shlex.quote(word) for word in bench]
        export = [*nox, "-s", "export", "--", out, "--format", "bencher", "--out", figures]
        self.postrun_cmds = [shlex.join(["python3", *export])]
        expected = REFERENCES[self.configuration]["total_fps"]
        self.reference = {"*": {"total_fps": (expected, -ALLOWED_LOSS, None, "frames/s")}}

    def figures(self):
        path = pathlib.Path(self.stagedir, "figures.json")
        return json.loads(path.read_text()) if path.is_file() else {}

    @sanity_function
    def completed(self):
        said = f"{self.configuration} did not complete: see {self.stdout}"
        return sn.assert_in(self.configuration, self.figures(), msg=said)

    @performance_function("frames/s")
    def total_fps(self):
        return self.figures()[self.configuration]["total-fps"]["value"]
''')


def render(references: Mapping[str, Mapping[str, int]], *, where: str, matrix: str) -> str:
    """Return a parametrised test. ``references``: configuration -> total_fps and gpus; ``matrix`` has them."""
    return _TEST.substitute(
        where=where.replace('"', "'"),
        references=json.dumps(references, indent=4),
        matrix=json.dumps(matrix),
        allowed_loss=repr(ALLOWED_LOSS),
    )
