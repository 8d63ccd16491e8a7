"""What a published point costs in GPU-minutes, against a plain loop over Isaac Lab's own command line.

*In use*: every round costs its wall time on its GPUs, without the turns of others. *Host*: while any round runs, all
GPUs of its host are paid for. The loop runs the published cases one after another, each as often as it completed here.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from reports.verification import formulas
from reports.verification.figures.series import trains
from reports.verification.figures.wall_times import own_wall_s
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.shape import read_json

UPSTREAM = "upstream.json"

type Host = tuple[str | None, str | None, tuple[str, ...]]


def price(one: StoredSet) -> Json | None:
    """Return the figures of a set; None without a case that trained on GPUs. Copies measured alone are not in it."""
    on_gpus = [each for each in one.without_copies if each.case["device"] == "cuda"]
    walls_s = {id(record): own_wall_s(record) for each in on_gpus for record in each.rounds}
    own_s = {record: wall_s for record, wall_s in walls_s.items() if wall_s is not None}
    points = [each for each in one.of_report if each in on_gpus and _is_point(each)]
    if not points:
        return None
    ran = [record for each in on_gpus for record in each.rounds if id(record) in own_s]
    hosts: dict[Host, list[Json]] = {}
    for record in ran:
        hosts.setdefault(_host(record), []).append(record)
    timed = _upstream_walls_s(one)
    loops_s = [(each, len(each.completed) * _wall_s(each, timed, own_s)) for each in points]
    in_use = sum(own_s[id(record)] * world_size(record["case"]) for record in ran)
    loop = sum(loop_s * world_size(each.case) for each, loop_s in loops_s)
    host = sum(_union_s(on_it) * _gpus(on_it) for on_it in hosts.values())
    loop_host = sum(loop_s * _gpus(hosts[_host(each.completed[0])]) for each, loop_s in loops_s)
    return {
        "points": len(points),
        "points_with_timed_loop": sum(each.case_id in timed for each in points),
        "in_use_gpu_minutes_of_a_point": in_use / 60 / len(points),
        "in_use_gpu_minutes_of_a_point_of_the_loop": loop / 60 / len(points),
        "in_use_ratio": in_use / loop,
        "host_gpu_minutes_of_a_point": host / 60 / len(points),
        "host_gpu_minutes_of_a_point_of_the_loop": loop_host / 60 / len(points),
        "host_ratio": host / loop_host,
    }


def _is_point(each: StoredCase) -> bool:
    is_timed = any(record["wall_time_s"] is not None for record in each.completed)
    return trains(each) and is_timed


def _wall_s(each: StoredCase, timed: Mapping[str, float], own_s: Mapping[int, float]) -> float:
    """Return the time of a process of the loop: upstream's where it was timed, else the median of ours."""
    walls_s = [own_s[id(record)] for record in each.completed if id(record) in own_s]
    return timed.get(each.case_id) or formulas.median(walls_s)


def _upstream_walls_s(one: StoredSet) -> dict[str, float]:
    path, walls_s = one.folder / UPSTREAM, dict[str, list[float]]()
    for pair in read_json(path) if path.is_file() else ():
        if pair.get("theirs_wall_s") is not None:
            walls_s.setdefault(pair["case_id"], []).append(pair["theirs_wall_s"])
    return {case_id: formulas.median(times_s) for case_id, times_s in walls_s.items()}


def _host(record: Json) -> Host:
    where = record["environment"]
    return where["host_label"], where["cpu_model"], tuple(sorted({gpu["name"] for gpu in where.get("gpus", [])}))


def _gpus(records: Sequence[Json]) -> int:
    """Return the most GPUs that a record saw on a node, times its nodes, which are one host if they are emulated."""
    most = 0
    for record in records:
        case, seen = record["case"], len(record["environment"].get("gpus", []))
        emulated = bool((record.get("transport") or {}).get("emulated"))
        of_nodes = max(seen, case["nproc_per_node"]) * case["nnodes"]
        most = max(most, max(seen, world_size(case)) if emulated else of_nodes)
    return most


def _union_s(records: Sequence[Json]) -> float:
    """Return the seconds in which at least one of the rounds ran."""
    total, reached = 0.0, 0.0
    starts_s = [datetime.fromisoformat(record["started_utc"]).timestamp() for record in records]
    walls_s = [record["wall_time_s"] for record in records]
    for start_s, wall_s in sorted(zip(starts_s, walls_s, strict=True)):
        total += max(0.0, start_s + wall_s - max(start_s, reached))
        reached = max(reached, start_s + wall_s)
    return total
