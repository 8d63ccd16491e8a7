"""The folder of labscale itself."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]  # the checkout, or the copy of it in an image or a bundle
