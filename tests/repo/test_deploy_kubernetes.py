"""The manifests for Kubernetes: by the CRDs of the Dask operator, and their commands as processes of this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import yaml
from dask_processes import free_ports, make_security
from requirements import skip_for_want_of

FOLDER = pathlib.Path(__file__).parents[2] / "deploy" / "kubernetes"
MANIFESTS = {path.name: list(yaml.safe_load_all(path.read_text())) for path in FOLDER.glob("*.yaml")}
CUSTOM = [name for name in sorted(MANIFESTS) if name != "common.yaml"]
SETTINGS, POLICY = MANIFESTS["common.yaml"]


def schema_of(kind: str) -> dict[str, Any]:
    """Return the schema of a kind of the operator's, which admits no other fields: the server would drop them."""
    package = importlib.util.find_spec("dask_kubernetes")
    if package is None:
        skip_for_want_of("operator", "no dask-kubernetes (the extra deploy has it)")
    crds = (
        pathlib.Path(package.submodule_search_locations[0]) / "operator/deployment/helm/dask-kubernetes-operator/crds"
    )
    (version,) = yaml.safe_load((crds / f"{kind.lower()}.yaml").read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    schema["properties"] |= {name: {} for name in ("apiVersion", "kind", "metadata")}
    return closed(schema)


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the listed fields only, and with text or a number where both are admitted."""
    found = {name: closed(value) if isinstance(value, dict) else value for name, value in schema.items()}
    if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        found.pop("type", None)
    return found


def faults(manifest: dict[str, Any]) -> list[str]:
    import jsonschema

    validator = jsonschema.Draft7Validator(schema_of(manifest["kind"]))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(manifest)]


@pytest.mark.ci
@pytest.mark.parametrize("name", CUSTOM)
def test_manifest_follows_the_schema_of_the_operator(name):
    (manifest,) = MANIFESTS[name]
    assert manifest["apiVersion"] == "kubernetes.dask.org/v1"
    assert faults(manifest) == []


@pytest.mark.ci
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ('"replicas": 2', '"replicas": "two"'),
        ('"envFrom"', '"environmentFrom"'),
        ('"image"', '"picture"'),
        ('"selector"', '"select"'),
    ],
)
def test_fault_in_a_manifest_is_detected(change, fault):
    (manifest,) = MANIFESTS["cluster-gpu.yaml"]
    text = json.dumps(manifest)
    assert change in text
    assert faults(json.loads(text.replace(change, fault)))


def parts(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the pods of a manifest, by their part."""
    spec = manifest["spec"]
    cluster = spec["cluster"]["spec"] if manifest["kind"] == "DaskJob" else spec
    pods = {"scheduler": cluster["scheduler"]["spec"], "worker": cluster["worker"]["spec"]}
    return pods | ({"job": spec["job"]["spec"]} if "job" in spec else {})


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_job_has_the_cluster_of_its_file_and_waits_for_all_workers(kind):
    (cluster,) = MANIFESTS[f"cluster-{kind}.yaml"]
    (job,) = MANIFESTS[f"job-{kind}.yaml"]
    assert job["spec"]["cluster"]["spec"] == cluster["spec"]
    limits = parts(cluster)["worker"]["containers"][0]["resources"]["limits"]
    workers = cluster["spec"]["worker"]["replicas"] * int(limits.get("nvidia.com/gpu", 1))
    args = parts(job)["job"]["containers"][0]["args"]
    assert args[:6] == ["mgraph", "graph500", "--scale", "16", "--workers", str(workers)]


@pytest.mark.parametrize("name", CUSTOM)
def test_pods_use_tls_and_are_selected_by_the_policy(name):
    (manifest,) = MANIFESTS[name]
    assert manifest["metadata"]["labels"] == POLICY["spec"]["podSelector"]["matchLabels"]
    for pod in parts(manifest).values():
        (container,) = pod["containers"]
        assert container["envFrom"] == [{"configMapRef": {"name": SETTINGS["metadata"]["name"]}}]
        assert any(volume.get("secret") == {"secretName": "mgraph-tls"} for volume in pod["volumes"])
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_gpu_workers_have_shared_memory():
    (manifest,) = MANIFESTS["cluster-gpu.yaml"]
    mounts = {mount["mountPath"] for mount in parts(manifest)["worker"]["containers"][0]["volumeMounts"]}
    assert "/dev/shm" in mounts


@pytest.mark.long
@pytest.mark.timeout(300)
def test_commands_of_the_cpu_job_run_as_processes(tmp_path):
    """In place of pods: names, port and certificates are this machine's."""
    make_security(tmp_path)
    (manifest,) = MANIFESTS["job-cpu.yaml"]
    (port,) = map(str, free_ports(1))
    places = {"/tls/cert.pem": f"{tmp_path}/certificate.pem", "/tls/key.pem": f"{tmp_path}/key.pem"}
    environment = {**os.environ, **{name: places.get(value, value) for name, value in SETTINGS["data"].items()}}
    environment["DASK_TEMPORARY_DIRECTORY"] = str(tmp_path)

    def command(part: str, name: str = "") -> list[str]:
        args = parts(manifest)[part]["containers"][0]["args"]
        local = {"mgraph-scheduler": "127.0.0.1", "8786": port, "$(DASK_WORKER_NAME)": name}
        for word, here in local.items():
            args = [arg.replace(word, here) for arg in args]
        return [sys.executable, "-m", *args]

    servers = [command("scheduler"), command("worker", "one"), command("worker", "two")]
    with contextlib.ExitStack() as running, (tmp_path / "log").open("w") as log:
        for server in servers:
            process = subprocess.Popen(server, cwd=tmp_path, env=environment, stdout=log, stderr=log)
            running.callback(process.wait)
            running.callback(process.terminate)
        small = ["4" if word == "16" else word for word in command("job")]
        done = subprocess.run(small, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "log").read_text()
    assert "2 cpu ranks" in done.stdout
    assert "all validated" in done.stdout
