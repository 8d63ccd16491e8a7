"""Options that would do nothing beside the others are refused by name; those that make sense together are not."""

import pytest

from suite.__main__ import main, parse
from suite.commands.campaign_options import options_of
from suite.errors import UsageError
from suite.launch.registry import resources
from suite.matrix.resources import UNBOUNDED
from suite.options.types import sbatch_option, slurm_time
from suite.schema.record import Environment
from tests.fixtures.runs.asked_options import options_with


def check(command: str) -> None:
    options_of(parse(command.split()))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("bench --launcher slurm --render-only --nodes a,b", "--nodes: only with --launcher ssh"),
        ("bench --launcher container --nodes a,b", "--nodes: only with --launcher ssh"),
        ("bench --launcher ray --nodes a,b", "--nodes: only with --launcher ssh .* got --launcher ray"),
        ("bench --launcher ray --image x", "--image: only with .* got --launcher ray"),
        ("bench --shm-gb 2", "--shm-gb: only with --launcher container, got --launcher native"),
        ("bench --launcher slurm --shm-gb 2", "--shm-gb: only with --launcher container, got --launcher slurm"),
        ("bench --ssh-config /dev/null", "--ssh-config: only with --nodes HOST,HOST"),
        ("bench --launcher slurm --ssh-config /dev/null", "--ssh-config: only with --nodes HOST,HOST"),
        (
            "bench --launcher slurm --render-only --upstream --profile 0 --video --retry-failed",
            "--render-only writes scripts .* no use for --upstream, --profile, --video, --retry-failed",
        ),
        ("bench --image x", "--image: only with bench --launcher container, apptainer or slurm, or with plan --render"),
        ("bench --nodes a,b --image x", "--image: only with .* got --launcher ssh"),
        ("plan --image x", "--image: only with .* plan --render, got --launcher native"),
        ("plan --volume-claim x", "--volume-claim: only with plan --render kubernetes, got no --render"),
        ("plan --render osmo --image i --volume-claim x", "plan --render kubernetes, got --render osmo"),
        ("plan --render kubernetes --image i --nodes a,b", "--render kubernetes writes files .* no use for --nodes"),
        ("plan --render osmo --image i --emulate-nodes 2", "no use for --emulate-nodes"),
        (
            "plan --render kubernetes --image i --worker-python p",
            "--render kubernetes writes commands for an image, which has its own Python, .* no use for --worker-python",
        ),
        ("plan --render osmo --image i --worker-python p", "--render osmo .* no use for --worker-python"),
        ("bench --partition p --time 5 --render-only", "--partition, --time: only with --launcher slurm, got"),
        ("bench --sbatch-option mem=0", "--sbatch-option: only with --launcher slurm, got --launcher native"),
        ("bench --nodes a,b --account x", "--account: only with --launcher slurm, got --launcher ssh"),
        ("bench --worker-python p --worker-package a==1", "--worker-python p takes .* no use for --worker-package"),
        ("bench --launcher container --worker-package a==1", "--launcher container in an image .* --worker-package"),
        ("bench --launcher slurm --image a.sif --worker-package a==1", "--launcher slurm in an image .* --worker-pack"),
        ("plan --render osmo --image i --worker-package a==1", "--render osmo .* no use for --worker-package"),
        (
            "bench --nodes a,b --emulate-nodes 2",
            "--emulate-nodes: only with its own --launcher .* got --launcher ssh",
        ),
    ],
)
def test_what_would_do_nothing_is_refused(command: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check(command)


@pytest.mark.parametrize(
    "command",
    [
        "bench",
        "bench --profile 0,3 --upstream --video --retry-failed",
        "bench --launcher container --image i --shm-gb 2 --accept-eula",
        "bench --launcher apptainer --image i.sif",
        "bench --launcher slurm --partition gpu --account robots --time 1-0 --sbatch-option mem=0 --upstream",
        "bench --launcher slurm --image i.sif --render-only --ignore-env-check --no-report",
        "bench --launcher ray --ignore-env-check --device cpu",
        "bench --nodes a,b --ssh-config /dev/null",
        "bench --launcher ssh --nodes a,b",
        "bench --emulate-nodes 2",
        "plan --nodes a,b --ssh-config /dev/null",
        "plan --render kubernetes --image i --volume-claim x --out d --accept-eula",
        "plan --render osmo --image i --out d --host-label ours",
        "plan --worker-python p",
        "bench --nodes a,b --worker-package ../mine --worker-package my-robots==1.2",
    ],
)
def test_what_makes_sense_together_is_not(command: str) -> None:
    check(command)


def test_scripts_may_be_for_any_cluster(environment: Environment) -> None:
    assert resources(options_with(launcher="slurm", render_only=True), environment) == UNBOUNDED


@pytest.mark.parametrize("nodes", [(), ("--nodes",)])
def test_settings_of_ssh_without_hosts(nodes: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env_check", "--ssh-config", "/dev/null", *nodes]) == 11
    assert "--ssh-config /dev/null: only with --nodes HOST,HOST" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["5", "5:30", "1:00:00", "2-0", "2-00:30", "2-00:30:00", "0", "UNLIMITED", "infinite"])
def test_every_form_of_time_that_slurm_takes(text: str) -> None:
    assert slurm_time(text) == text


@pytest.mark.parametrize("text", ["oversubscribe", "constraint=h200&ib", "comment=a = b", "nodelist=n2,n3", "x11="])
def test_options_of_sbatch_are_left_as_they_are(text: str) -> None:
    assert sbatch_option(text) == text


@pytest.mark.parametrize("command", ["bench", "env_check"])
@pytest.mark.parametrize("file", ["/dev/zero", "/", "/nowhere"])
def test_an_ssh_configuration_that_no_program_could_read_to_its_end_is_refused(
    command: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--nodes", "a,b", "--ssh-config", file]) == UsageError.exit_code
    assert f"--ssh-config: got '{file}'" in capsys.readouterr().err
