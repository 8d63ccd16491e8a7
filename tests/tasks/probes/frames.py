"""Compare two pictures.

``python -m tests.tasks.probes.frames A.png B.png [SHIFT]``; SHIFT moves B to the right [pixels].
"""

import json
import sys

COUNTS_AS_DIFFERENT = 16  # of 255, in any channel


def main(a_path: str, b_path: str, shift: int) -> None:
    import numpy as np
    from PIL import Image

    a, b = (np.asarray(Image.open(path).convert("RGB")).astype(int) for path in (a_path, b_path))
    if a.shape != b.shape:
        raise ValueError(f"the pictures have different sizes: {a.shape} and {b.shape}")
    difference = np.abs(a - np.roll(b, shift, axis=1))
    print(
        json.dumps(
            {
                "mean_of_channels": difference.mean(axis=(0, 1)).tolist(),
                "share_of_pixels_that_differ": float((difference.max(axis=2) > COUNTS_AS_DIFFERENT).mean()),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
