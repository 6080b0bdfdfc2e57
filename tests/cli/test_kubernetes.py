"""deploy/kubernetes: its parts fit each other, and `olaf` takes its configuration and commands.

Whether Kubernetes takes the files is `make kubernetes`, against the schemas.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from olaf.cli.main import run
from olaf.jobs.reading import read_settings

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"

Resource = dict[str, Any]


def resources() -> dict[tuple[str, str], Resource]:
    found = {}
    for file in yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]:
        for one in yaml.safe_load_all((FOLDER / file).read_text()):
            found[one["kind"], one["metadata"]["name"]] = one
    return found


ALL = resources()

PODS = {
    "server": ALL["StatefulSet", "olaf-server"]["spec"]["template"],
    "switch": ALL["Deployment", "olaf-switch"]["spec"]["template"],
    "worker": ALL["Job", "olaf-workers"]["spec"]["template"],
}


def configuration(folder: Path) -> Path:
    for name, text in ALL["ConfigMap", "olaf"]["data"].items():
        (folder / name).write_text(text)
    return folder


def test_every_file_is_in_the_kustomization() -> None:
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    there = {file.name for file in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize("role", PODS)
def test_olaf_takes_the_command_and_its_configuration(
    role: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (container,) = PODS[role]["spec"]["containers"]
    assert container["command"] == ["olaf", role]
    known = {"POD_IP": "10.9.8.7", "WORKER_ID": "3"}
    given = {entry["name"] for entry in container["env"]}
    args = []
    for arg in container["args"]:
        named = {name for name in known if f"$({name})" in arg}
        assert named <= given
        told = arg.replace("/etc/olaf", str(configuration(tmp_path)))
        for name in named:
            told = told.replace(f"$({name})", known[name])
        args.append(told)
    assert run([role, *args, "--print-config"]) == 0
    (tmp_path / "effective.toml").write_text(capsys.readouterr().out)
    settings = read_settings(tmp_path / "effective.toml")
    if role == "worker":
        assert settings.worker.id == 3
        assert settings.worker.updates is not None  # else the Job would never be complete
    else:
        assert getattr(settings, role).listen.startswith("10.9.8.7:")
    if role == "server":
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert Path(settings.server.checkpoint or "").parent == Path(mounted["state"])


@pytest.mark.parametrize("role", ["server", "switch"])
def test_ports_agree_from_the_service_to_the_probe(role: str) -> None:
    service = ALL["Service", f"olaf-{role}"]["spec"]
    (port,) = service["ports"]
    (container,) = PODS[role]["spec"]["containers"]
    assert service["selector"].items() <= PODS[role]["metadata"]["labels"].items()
    assert service["type"] == "ClusterIP"
    assert "clusterIP" not in service  # headless: its name would mean a pod that may be gone
    inside, metrics = container["ports"]
    assert port["protocol"] == inside["protocol"] == "UDP"
    assert port["port"] == port["targetPort"] == inside["containerPort"]
    assert f"--listen=$(POD_IP):{port['port']}" in container["args"]
    assert (metrics["name"], metrics["protocol"]) == ("metrics", "TCP")
    assert f"--metrics=$(POD_IP):{metrics['containerPort']}" in container["args"]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        # By the pod's address, and without a header: the kubelet has no token, and needs none.
        assert container[probe]["httpGet"] == {"path": path, "port": "metrics"}


@pytest.mark.parametrize("role", ["server", "switch"])
def test_readers_of_metrics_need_the_token_of_the_secret(role: str) -> None:
    (container,) = PODS[role]["spec"]["containers"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    secret = {volume["name"]: volume for volume in PODS[role]["spec"]["volumes"]}["key"]["secret"]
    items = {item["key"]: item["path"] for item in secret["items"]}
    token = f"{mounted['key']}/{items['metrics.token']}"
    assert f"--metrics-token-file={token}" in container["args"]


def test_a_switch_that_misses_its_server_stays_in_its_service() -> None:
    """Out of it, it could not tell its workers what is wrong."""
    assert ALL["Service", "olaf-switch"]["spec"]["publishNotReadyAddresses"] is True


def test_each_role_is_told_the_service_of_the_next(tmp_path: Path) -> None:
    folder = configuration(tmp_path)
    switch = read_settings(folder / "switch.toml").switch
    worker = read_settings(folder / "worker.toml").worker
    for address, role in ((switch.upstream, "server"), (worker.switch, "switch")):
        name, _, port = address.rpartition(":")
        (known,) = ALL["Service", name]["spec"]["ports"]
        assert name == f"olaf-{role}"
        assert known["port"] == int(port)


@pytest.mark.parametrize("role", PODS)
def test_what_is_mounted_is_there(role: str) -> None:
    spec = PODS[role]["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    claims = ALL["StatefulSet", "olaf-server"]["spec"]["volumeClaimTemplates"]
    named = set(volumes) | ({c["metadata"]["name"] for c in claims} if role == "server" else set())
    (container,) = spec["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} <= named
    known = ALL["ConfigMap", "olaf"]["data"]
    assert {item["key"] for item in volumes["config"]["configMap"]["items"]} == {f"{role}.toml"}
    assert f"{role}.toml" in known


@pytest.mark.parametrize("role", PODS)
def test_pods_are_what_their_owner_looks_for(role: str) -> None:
    owner = {"server": "StatefulSet", "switch": "Deployment"}.get(role)
    if owner is not None:
        wanted = ALL[owner, f"olaf-{role}"]["spec"]["selector"]["matchLabels"]
        assert wanted.items() <= PODS[role]["metadata"]["labels"].items()


def test_a_worker_that_is_refused_is_not_tried_again() -> None:
    """The exit codes of `olaf` that are no better the next time."""
    from olaf.errors.outcome import Exit

    rules = ALL["Job", "olaf-workers"]["spec"]["podFailurePolicy"]["rules"]
    (fatal,) = [rule for rule in rules if rule["action"] == "FailJob"]
    assert fatal["onExitCodes"]["values"] == [Exit.USAGE, Exit.REFUSED]
