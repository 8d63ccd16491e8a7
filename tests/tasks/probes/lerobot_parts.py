"""What the controls of LeRobot do without it; prints what each part gave."""

import json
from types import SimpleNamespace
from typing import Any


def main() -> None:
    import torch

    from tasks.libraries.act_lerobot import latencies, picture_size
    from tasks.libraries.record_lerobot import read_back

    def size_of(shape: tuple[int, ...]) -> Any:
        try:
            return picture_size(SimpleNamespace(single_observation_space={"policy": SimpleNamespace(shape=shape)}))
        except ValueError as error:
            return str(error)

    picture = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)
    kept = {"observation.images.camera": picture.permute(2, 0, 1) / 255, "action": torch.tensor(0.5)}
    given = {"observation.images.camera": picture.numpy(), "action": torch.tensor([0.5]).numpy()}
    other = {**given, "observation.images.camera": (picture + 1).numpy()}
    found = {
        "latencies": [list(latencies([]).values()), list(latencies([float(time_s) for time_s in range(200)]).values())],
        "sizes": [size_of((6, 96, 96)), size_of((4,)), size_of((4, 96, 96))],
        "read_back": [
            [check.verdict, check.found, check.fault]
            for check in (read_back([kept], {0: given}), read_back([kept, kept], {0: given, 1: other}))
        ],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
