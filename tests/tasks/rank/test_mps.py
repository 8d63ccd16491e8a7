"""Whether MPS is in use, by a stub of the CUDA driver, as no GPU is here."""

from pathlib import Path

from tasks.rank import mps
from tests.fixtures.stand_ins.stub_drivers.build import build


def test_the_driver_says_whether_this_process_is_a_client_of_mps(tmp_path: Path) -> None:
    for option, answer in (("-DMPS=1", True), ("-DMPS=0", False), ("-DNO_DEVICE", None)):
        (tmp_path / option).mkdir()
        library = build(tmp_path / option / "libcuda.so", "cuda_driver.c", option)
        assert mps.is_used(0, str(library)) is answer
    assert mps.is_used(7, str(build(tmp_path / "libcuda.so", "cuda_driver.c"))) is None


def test_without_a_driver_nothing_is_known(tmp_path: Path) -> None:
    assert mps.is_used(0, str(tmp_path / "none.so")) is None
