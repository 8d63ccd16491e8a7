import pytest

from suite.env_check.check import Check, Feature, Verdict
from suite.env_check.request import DECISIVE, needs, unproved, weigh


def check(feature: Feature, verdict: Verdict, name: str = "some_check") -> Check:
    is_faulty = verdict in ("warning", "failure", "not_needed")
    return Check(
        name=name,
        feature=feature,
        verdict=verdict,
        found="",
        wanted="",
        fault="some_fault" if is_faulty else None,
        repair="repair it" if is_faulty else None,
        evidence=None,
    )


def test_on_a_cpu_only_host_and_worker_count() -> None:
    needed = needs("kitless", device="cpu", num_gpus=0)
    assert needed.features == {"host", "worker"}
    assert weigh(check("cuda", "failure"), needed).verdict == "not_needed"
    assert weigh(check("worker", "failure"), needed).verdict == "failure"


def test_nccl_is_needed_from_two_gpus_on() -> None:
    assert "nccl" not in needs("kitless", device="cuda", num_gpus=1).features
    assert "nccl" in needs("kitless", device="cuda", num_gpus=2).features


def test_newton_alone_captures_its_steps_in_cuda_graphs() -> None:
    assert "cuda-graphs" in needs("kitless", device="cuda", num_gpus=1).features
    assert "cuda-graphs" not in needs("kitless", device="cpu", num_gpus=0).features
    assert "cuda-graphs" not in needs("ovphysx", device="cuda", num_gpus=1).features


def test_physx_needs_libgl_and_nothing_else_of_egl() -> None:
    needed = needs("ovphysx", device="cuda", num_gpus=1)
    assert weigh(check("egl", "failure", "libgl"), needed).verdict == "failure"
    assert weigh(check("egl", "failure", "egl_frame"), needed).verdict == "not_needed"


@pytest.mark.parametrize("require", [(), ("vulkan",)])
def test_vulkan_needs_libegl(require: tuple[Feature, ...]) -> None:
    needed = needs("kitless" if require else "isaacsim", device="cuda", num_gpus=1, require=require)
    assert weigh(check("egl", "failure", "egl_loader"), needed).verdict == "failure"
    assert weigh(check("egl", "failure", "egl_frame"), needed).verdict == "not_needed"


@pytest.mark.parametrize("feature", ["cuda-graphs", "nccl", "rt-cores"])
def test_what_needs_a_gpu_needs_cuda_too(feature: Feature) -> None:
    assert {"cuda", feature} <= needs("kitless", device="cpu", num_gpus=0, require=(feature,)).features


def test_a_needed_feature_whose_proof_could_not_be_made_is_unproved() -> None:
    needed = needs("kitless", device="cuda", num_gpus=2)
    missing = check("nccl", "not_checked", DECISIVE["nccl"])
    others = [check("nccl", "not_checked", "memlock"), check("egl", "not_checked", DECISIVE["egl"])]
    assert unproved([missing, *others], needed) == (missing,)
