"""Three rollouts of a pipeline as the process that learns keeps them; prints the columns of each."""

import json
from unittest import mock


def main() -> None:
    from tasks.libraries.pipeline_torchrl import Ages

    ages, found = Ages(), []
    # With the weights of how many updates; when it was collected; when the update from it began and ended [ns].
    rollouts = (
        (0, 0, 4_000_000_000, 5_000_000_000, 8_000_000_000),
        (0, 5_000_000_000, 9_000_000_000, 10_000_000_000, 12_000_000_000),
        (1, 9_500_000_000, 11_000_000_000, 13_000_000_000, 14_000_000_000),
    )
    for version, begun_ns, ended_ns, *update_ns in rollouts:
        with mock.patch("time.perf_counter_ns", side_effect=update_ns):
            ages.received(version, begun_ns, ended_ns)
            found.append(list(ages.last().values()))
            ages.updated()
    print(json.dumps({"rollouts": found}))


if __name__ == "__main__":
    main()
