from dataclasses import replace

from reports.analysis.rows import case_rows
from suite.schema.record import CaseResult
from suite.schema.transport import Transport
from tests.fixtures.results.generated_results import (
    node_results,
)


def emulated(result: CaseResult) -> CaseResult:
    crossed = Transport(library="nccl", interfaces=("lo",), between_nodes=("host_memory",), emulated=True)
    return replace(result, rounds=tuple(replace(record, transport=crossed) for record in result.rounds))


def test_emulated_nodes_have_a_line_of_their_own() -> None:
    one, _, spread = node_results()
    for result, curve in ((spread, "rsl_rl, 2 nodes"), (emulated(spread), "rsl_rl, 2 nodes, emulated")):
        (row,) = (row for row in case_rows([one, node_results()[1], result]) if row.case_id == result.case.case_id)
        assert row.curve == curve
