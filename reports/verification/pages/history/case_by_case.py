"""Times of cases of one name in two versions: slower or faster, if what they are and ran on is the same."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from reports.verification import formulas
from reports.verification.figures import estimates
from reports.verification.figures.rows import of_pair
from reports.verification.figures.same_work import full
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

THRESHOLD: Final = 0.02  # smaller changes are none
MOST: Final = 0.5  # a case of which more rounds fail does
_NOT_OF_THE_CASE: Final = {"case_id", "timeout_s", "hang_timeout_s"}
_OF_THE_MACHINE: Final = (
    "cpu_model", "num_cpus", "os", "kernel", "driver_version", "cuda_driver_version", "suite_version",
    "worker_pins_sha256", "asset_sha256",
)  # fmt: skip
_NOT_OF_THE_SETTINGS: Final = {"seed", "num_envs", "device", "gpu_name", "gpu_numa_node", "cores_numa_nodes"}
# Compared if both sides say it.
_IF_KNOWN: Final = {
    "interconnect", "settings.cuda_graph", "settings.cuda_memory_pool_supported",
    "settings.cuda_memory_pool_enabled", "settings.cuda_memory_pool_kept_bytes", "settings.cuda_driver_version",
    "settings.torch_allocator_backend", "settings.torch_allocator_conf",
}  # fmt: skip

type Values = dict[str, set[str]]  # of every property of a case: its values in all rounds


def margin(sets: Sequence[StoredSet]) -> float:
    """Return what a change has to exceed: the threshold, or the noise of the sets if that is more."""
    return max([THRESHOLD, *(noise for one in sets if (noise := one.noise()) is not None)])


def direction(change: estimates.Estimate, allowed: float) -> int | None:
    """Return the sign of a relative change, 0 if all of it is within what is allowed, None if it may be either."""
    value, span = change
    if span is None:
        return None
    low, high = span
    if not _is_within(value, allowed) and (low > 0 or high < 0):
        return 1 if low > 0 else -1
    return 0 if _is_within(low, allowed) and _is_within(high, allowed) else None


def _is_within(change: float, allowed: float) -> bool:
    return formulas.apart(change) <= allowed + 1e-9


def figures(before: StoredVersion, now: StoredVersion) -> dict[str, Json]:
    """Return set and case -> figures, of cases in campaigns that have one name in both versions."""
    found = {}
    for new in now.with_speeds:
        name = new.folder.name
        old = next((one for one in before.sets if one.folder.name == name), None)
        if old and before.contributors.get(name) == now.contributors.get(name):
            earlier, allowed = {stored.case_id: stored for stored in old.of_report}, margin([old, new])
            for stored in new.of_report:
                if stored.case_id in earlier:
                    of = f"{name}: {stored.case_id} since {before.name}"
                    found[of] = _figures(earlier[stored.case_id], stored, allowed)
    return found


def _figures(old: StoredCase, new: StoredCase, allowed: float) -> Json:
    change = None
    if are_alike(old, new) and old.published_s and new.published_s:
        ratio, span = formulas.ratio([*new.published_s.values()], [*old.published_s.values()], 1.0)
        change = ratio - 1, span and (span[0] - 1, span[1] - 1)
    return {"verdict": _verdict(old, new, change, allowed), **of_pair("time_change", change)}


def _verdict(old: StoredCase, new: StoredCase, change: estimates.Estimate | None, allowed: float) -> str:
    if not are_alike(old, new):
        return "incomparable"
    if not old.completed:
        return "inconclusive"
    tried = [[record for record in one.rounds if record["outcome"] not in {"skipped", "lost"}] for one in (old, new)]
    if not tried[1]:
        return "incomparable"
    before, after = (sum(record["outcome"] != "completed" for record in some) / len(some) for some in tried)
    if change is None or after > MOST >= before:
        return "failed"
    words = {1: "regression", -1: "improvement", 0: "unchanged", None: "inconclusive"}
    return words[direction(change, allowed)]


# --- whether two results are of the same work on the same machine ---


def are_alike(old: StoredCase, new: StoredCase) -> bool:
    """Tell whether all properties have one value, the same on both sides. A case that never ran has only its own."""
    if not (old.completed and new.completed):
        return _of_the_case(old) == _of_the_case(new)
    sides = [_properties(old), _properties(new)]
    unknown = _IF_KNOWN - (sides[0].keys() & sides[1].keys())
    before, after = ({name: values for name, values in side.items() if name not in unknown} for side in sides)
    return before == after and all(len(values) == 1 for values in before.values())


def _of_the_case(stored: StoredCase) -> Json:
    return {name: value for name, value in full(stored.case).items() if name not in _NOT_OF_THE_CASE}


def _properties(stored: StoredCase) -> Values:
    rounds = [dict(_of_a_round(record)) for record in stored.completed]
    found: Values = {name: {repr(value)} for name, value in _of_the_case(stored).items()}
    for name in {name for one in rounds for name in one}:
        known = [one for one in rounds if name in one or name not in _IF_KNOWN]
        found[name] = {repr(one.get(name, "not set")) for one in known}
    return found


def _of_a_round(record: Json) -> Iterator[tuple[str, Any]]:
    machine, work = record["environment"], record.get("workload") or {}
    yield from ((name, machine.get(name)) for name in _OF_THE_MACHINE)
    yield "worker_packages", machine.get("worker_packages", [])
    yield "gpu_names", sorted({gpu["name"] for gpu in machine.get("gpus", [])})
    yield "image_digest", record.get("image_digest")
    yield "has_workload", bool(work)
    yield from ((f"workload.{name}", value) for name, value in work.items())
    settings = record["ranks"][0]["settings"] if record["ranks"] else {}
    for name, value in settings.items():
        if name not in _NOT_OF_THE_SETTINGS:
            yield f"settings.{name}", value
    transport = record.get("transport") or {}
    crossed = transport.get("between_nodes") or transport.get("within_node")
    if crossed or transport.get("emulated"):
        yield "interconnect", (crossed or [], bool(transport.get("emulated")))
