"""A campaign whose rounds run side by side: the interference test, and what follows from it.

The test's own rounds are kept in ``OUT/packing``, as a case in ``OUT/interference``, and count nowhere; those of other
cases beside them are the campaign's own, and count when the verdict is that they may. Verdict and evidence stand in
``OUT/packing.json``, and are not asked for again in this folder.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from suite.campaign.folder import Folder
from suite.campaign.packing import interference
from suite.campaign.packing import order as packing
from suite.campaign.packing.interference import Interference
from suite.campaign.packing.threads import Lanes
from suite.campaign.progress import Reporter, clock
from suite.campaign.rounds import disk_errors, ended_records, figures, store_if_complete
from suite.campaign.schedule import Queue, known_rounds
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.files.wording import counted
from suite.launch.registry import entry_of
from suite.options.options import Options
from suite.records import store
from suite.schema.lane import Lane
from suite.schema.record import Case, CaseResult, Device, PlannedCase, RunRecord
from suite.statistics import aa_noise as a_a


def slots_of(
    options: Options, *, device: Device, num_gpus: int, num_cpus: int, cores: Sequence[int]
) -> tuple[Lane, ...]:
    """What the host is shared out in; () where rounds run one after another, with all of it for each.

    Raises:
        UsageError: packing is asked for where it cannot be.
    """
    if options.rounds.pack and not entry_of(options).shares_host:
        raise UsageError(
            f"--pack gives each round GPUs and cores of its own, which --launcher {options.place.launcher} cannot do "
            "yet. Pack with --launcher native, or leave --pack out."
        )
    if (
        options.rounds.pack is False
        or not entry_of(options).shares_host
        or (device == "cpu" and not options.rounds.pack)
    ):
        return ()
    return packing.shared_out(num_gpus=num_gpus if device == "cuda" else 0, cpus=cores, num_cpus=num_cpus)


def forecast(campaign: Campaign, rounds: Sequence[int] = ()) -> packing.Forecast | None:
    """Of the feasible cases, ``rounds`` of each (default: the plan's); None where nothing can be packed."""
    items = _feasible(campaign)
    probe = baseline(items, num_slots=len(campaign.slots))
    if probe is None:
        return None
    walls_s = packing.guessed([item.estimated_wall_s for item in items])
    counts = rounds or [item.rounds for item in items]
    work = [
        packing.Work(ranks=item.case.nproc_per_node, rounds=count, wall_s=wall_s)
        for item, count, wall_s in zip(items, counts, walls_s, strict=True)
    ]
    # A round beside others takes its slots from them.
    probes = interference.PAIRS * (1 + probe.case.nproc_per_node / len(campaign.slots))
    probe_s = walls_s[items.index(probe)]
    num_rounds = len(interference.ORDER)
    return packing.Forecast(
        alone_s=sum(item.rounds * item.wall_s for item in work),
        packed_s=packing.expected_wall_s(work, num_slots=len(campaign.slots)),
        test_s=probes * probe_s,
        refused_s=(num_rounds / 2 * probe_s, num_rounds * probe_s),
    )


def baseline(items: Sequence[PlannedCase], *, num_slots: int) -> PlannedCase | None:
    """The case that the test measures; None when it leaves no room beside it.

    The quickest of those on the fewest ranks: the host waits for half of the test's rounds, so they decide whether a
    short campaign has anything to gain. Where no estimate is known, the first.
    """

    def price(item: PlannedCase) -> tuple[int, float]:
        return item.case.nproc_per_node, inf if item.estimated_wall_s is None else item.estimated_wall_s

    trained = [item for item in items if item.case.learns and not a_a.is_twin(item.case)]
    chosen = min(trained, key=price, default=None)
    return chosen if chosen is not None and chosen.case.nproc_per_node < num_slots else None


def run(campaign: Campaign, folder: Folder) -> bool:
    """Run everything side by side and return True, or say why not, leaving it all to be run one after another.

    Raises:
        StoreError: what an earlier command found cannot be read.
    """
    path = folder.root / interference.FILE
    queue = Queue(campaign, folder)
    found = interference.read(path)
    if not queue.waiting():
        if found is None or not found.packed:  # a command was killed before it did so
            _set_untested_aside(campaign, folder)
        return False
    found = found or _without_test(campaign, folder)
    measured = baseline(_feasible(campaign), num_slots=len(campaign.slots))
    probes = [interference.probe_of(measured)] if measured and not found else []
    waiting = [item.case for item, _ in known_rounds(campaign, folder)]
    reporter = Reporter(
        campaign.console,
        [*campaign.planned, *probes],
        [probe.case for probe in probes for _ in interference.ORDER] + waiting,
    )
    reporter.share = lambda case: case.nproc_per_node / len(campaign.slots)
    with disk_errors(folder.root), Lanes(campaign, reporter) as lanes:
        packer = _Packer(campaign, folder, reporter, queue, lanes)
        for probe in probes:
            found = packer.test(probe)
            if found.case_id is not None:
                interference.write(found, path)
        if found is None:
            raise AssertionError("there is neither a verdict nor a test")
        campaign.console.print(str(found), highlight=False, markup=False, soft_wrap=True)
        if found.packed:
            packer.run_all()
            return True
    _set_untested_aside(campaign, folder)
    return False


def why_not_shared(campaign: Campaign) -> str | None:
    """Why a host with several GPUs is not shared out; None where it is, or has none to share."""
    num_gpus, options = len(campaign.machine.gpus), campaign.options
    if campaign.slots or campaign.device == "cpu" or num_gpus < 2:  # noqa: PLR2004  (a host of one has no neighbours)
        return None
    if options.rounds.pack is False:
        return "--no-pack asks for it"
    if not entry_of(options).shares_host:
        return f"--launcher {options.place.launcher} cannot give rounds GPUs and cores of their own yet"
    return f"there are too few cores, {campaign.machine.num_cpus}, to share out over {counted(num_gpus, 'GPU')}"


def _without_test(campaign: Campaign, folder: Folder) -> Interference | None:
    """Why there is nothing to test; None when there is."""
    known = [item.case.case_id for item, _ in known_rounds(campaign, folder)]
    expected = forecast(campaign, [known.count(item.case.case_id) for item in _feasible(campaign)])
    if expected is None:
        return Interference(packed=False, reason="no case leaves room for another beside it")
    saved_s = expected.alone_s - expected.packed_s
    if saved_s <= expected.test_s and not campaign.options.rounds.pack:
        return Interference(
            packed=False,
            reason=f"packing would save about {clock(saved_s)}, and the test whether it may takes "
            f"{clock(expected.test_s)} (--pack makes it all the same)",
        )
    return None


def _set_untested_aside(campaign: Campaign, folder: Folder) -> None:
    """Rounds that ran beside others in a test that did not allow it are run again; what they cost is kept with it.

    Cases that are decided stay as they are, and those that get more rounds until these are there.
    """
    for item in _feasible(campaign):
        if folder.is_decided(item.case):
            continue
        packed = [record for record in ended_records(folder, item.case) if record.neighbours]
        beside = interference.beside_of(item.case)
        if packed:
            _store(folder, [replace(record, case=beside) for record in packed], "they ran beside the interference test")
        for record in packed:
            folder.set_aside(folder.run_dir(item.case, record.round), "packed")


def set_failed_test_aside(campaign: Campaign, folder: Folder) -> None:
    """Have a test made again that refused because a round of it failed; where none would be made, it is what is known.

    Raises:
        StoreError: the verdict cannot be read.
    """
    path = folder.root / interference.FILE
    found = interference.read(path)
    if found is None or found.alone_s:  # it has measured something
        return
    would_be_made = campaign.slots and Queue(campaign, folder).waiting() and not _without_test(campaign, folder)
    if not would_be_made:
        return
    own = Folder(root=folder.root / interference.RAW_FOLDER)
    for probe in (interference.probe_of(item) for item in campaign.planned if item.case.case_id == found.case_id):
        for record in ended_records(own, probe.case):
            if record.outcome != "completed":
                own.set_aside(own.run_dir(probe.case, record.round), "failed")
        folder.set_aside(folder.case_path(probe.case), "superseded")
        folder.set_aside(path, "failed")  # last: killed before, the next command comes here again


def _feasible(campaign: Campaign) -> list[PlannedCase]:
    return [item for item in campaign.planned if not item.infeasible]


def _store(folder: Folder, records: Sequence[RunRecord], because: str) -> None:
    """Keep rounds of the test, or beside it, as a case apart: what they cost, and what the verdict is of."""
    case = records[0].case
    if not folder.case_path(case).exists():
        store.write_case(CaseResult(case=case, rounds=tuple(records), ended_because=because), folder.case_path(case))


class _Packer:
    """Starts rounds where there is room, and takes in those that end."""

    def __init__(self, campaign: Campaign, folder: Folder, reporter: Reporter, queue: Queue, lanes: Lanes) -> None:
        self._campaign, self._folder, self._reporter = campaign, folder, reporter
        self._queue, self._lanes = queue, lanes
        self._overtaken: Counter[tuple[str, int]] = Counter()
        self._warm = {
            _program(item.case) for item in _feasible(campaign) if campaign.warm_ups or folder.finished(item.case)
        }
        self._may_store = False  # a case with rounds that are not yet known to count

    def run_all(self) -> None:
        """Run what is left, and store each decided case."""
        self._may_store = True
        for item in self._campaign.planned:
            store_if_complete(self._campaign, self._folder, item)
        self._fill(range(len(self._campaign.slots)))
        while self._lanes.running:
            self._take_in()
            self._fill(range(len(self._campaign.slots)))

    def test(self, probe: PlannedCase) -> Interference:
        """Run the baseline alone and beside others, as far as an earlier command has not, and judge."""
        folder = Folder(root=self._folder.root / interference.RAW_FOLDER)
        folder.root.mkdir(exist_ok=True)
        others = range(probe.case.nproc_per_node, len(self._campaign.slots))
        records: list[RunRecord] = []
        for number, beside in enumerate(interference.ORDER):
            if interference.is_settled(records):
                break
            if not folder.is_finished(probe.case, number):
                if beside:
                    self._fill(others)
                    if not self._lanes.running:
                        return Interference(packed=False, reason="too few rounds are left to test it with")
                while self._lanes.running and not beside:
                    self._take_in()
                self._run_probe(folder, probe, number, others if beside else ())
            records.append(store.read_record_of(probe.case, number, folder.record_path(probe.case, number)))
        _store(self._folder, records, f"the interference test has {counted(len(records), 'round')}")
        return interference.judged(records)

    def _run_probe(self, folder: Folder, probe: PlannedCase, number: int, others: Sequence[int]) -> None:
        """One round of the test; while it runs, the slots of others stay as full as rounds allow."""
        slots = tuple(range(probe.case.nproc_per_node))
        mine = self._lanes.start(folder, probe, number, slots, compiles=self._compiles(probe.case), with_upstream=False)
        while mine in self._lanes.running:
            self._take_in()
            if mine in self._lanes.running:
                self._fill(others)

    def _fill(self, slots: Sequence[int]) -> None:
        """Start every round that should start now on these slots."""
        while slots:
            running = [each for each in self._lanes.running if set(each.slots) <= set(slots)]
            waiting = [entry for entry in self._queue.waiting() if entry[0].case.nproc_per_node <= len(slots)]
            chosen = packing.next_start(
                [self._expected(item, index) for item, index in waiting],
                [each.expected() for each in running],
                num_slots=len(slots),
            )
            if chosen is None:
                return
            item, index = waiting[chosen]
            if not self._queue.take(item, index):
                continue
            if chosen > 0:
                self._overtaken[waiting[0][0].case.case_id, waiting[0][1]] += 1
            taken = set(itertools.chain.from_iterable(each.slots for each in running))
            mine = packing.choose_slots([slot for slot in slots if slot not in taken], item.case.nproc_per_node)
            self._lanes.start(self._folder, item, index, mine, compiles=self._compiles(item.case))

    def _take_in(self) -> None:
        """Wait for the next round to end, and go on from what it left."""
        ended, record = self._lanes.wait()
        self._reporter.ended(record, figures(record))
        if record.outcome == "completed":
            self._warm.add(_program(record.case))
        if interference.is_probe(record.case):
            return
        self._queue.ended(ended.item, ended.round_index)
        if self._may_store:
            store_if_complete(self._campaign, self._folder, ended.item)

    def _expected(self, item: PlannedCase, round_index: int) -> packing.Waiting:
        return packing.Waiting(
            ranks=item.case.nproc_per_node,
            wall_s=item.estimated_wall_s,
            compiles=self._compiles(item.case),
            overtaken=self._overtaken[item.case.case_id, round_index],
        )

    def _compiles(self, case: Case) -> str | None:
        """Whose kernels are compiled by this round; two at once would do the same work, and slow each other."""
        return None if _program(case) in self._warm else f"{case.stack} {case.task}"


def _program(case: Case) -> tuple[str, str, str]:
    """What has kernels of its own."""
    return case.stack, case.task, case.rl_library
