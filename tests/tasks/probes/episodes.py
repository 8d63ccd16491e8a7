"""Two environments with episodes over two rollouts, as the adapter of TorchRL keeps them; prints their means."""

import json


def main() -> None:
    import torch

    from tasks.libraries.train_torchrl import Episodes

    episodes = Episodes(2, torch.device("cpu"))
    found = {"none": episodes.means()}
    reward = torch.tensor([[1.0, 2.0, 4.0], [10.0, 10.0, 2.0]])
    episodes.add(reward, torch.tensor([[False, True, False], [False, False, False]]))
    found["one"] = episodes.means()  # 1 + 2 in two steps; 4 goes on, and 22
    episodes.add(torch.tensor([[1.0, 0.0], [5.0, 3.0]]), torch.tensor([[False, False], [False, True]]))
    found["both"] = episodes.means()  # and 22 + 8 in five steps
    print(json.dumps(found))


if __name__ == "__main__":
    main()
