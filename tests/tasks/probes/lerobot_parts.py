"""Read frames back as the control of LeRobot does, without it; print what is said of equal and of other ones."""

import json


def main() -> None:
    import torch

    from tasks.libraries.controls_lerobot import read_back

    picture = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)
    kept = {"observation.images.camera": picture.permute(2, 0, 1) / 255, "action": torch.tensor(0.5)}
    given = {"observation.images.camera": picture.numpy(), "action": torch.tensor([0.5]).numpy()}
    other = {**given, "observation.images.camera": (picture + 1).numpy()}
    results = {
        "read_back": [
            [check.verdict, check.found, check.fault]
            for check in (read_back([kept], {0: given}), read_back([kept, kept], {0: given, 1: other}))
        ],
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
