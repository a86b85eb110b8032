"""The files for containers in `configs/cluster` are valid by the schemas of what reads them."""

from __future__ import annotations

from pathlib import Path

import kubernetes_validate
import yaml

CLUSTER = Path(__file__).parent.parent / "configs" / "cluster"
VERSION = "1.31"  # of Kubernetes


def test_the_manifests_are_valid() -> None:
    manifests = list(yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text()))
    for manifest in manifests:
        kubernetes_validate.validate(manifest, VERSION, strict=True)
    kinds = [manifest["kind"] for manifest in manifests]
    assert kinds.count("Deployment") == 3
    for manifest in manifests:  # what a pod names is there
        pod = manifest["spec"]["template"]["spec"] if manifest["kind"] == "Deployment" else {}
        volumes = {volume["name"] for volume in pod.get("volumes", ())}
        for container in pod.get("containers", ()):
            assert {m["name"] for m in container.get("volumeMounts", ())} <= volumes


def test_compose_and_kubernetes_have_the_same_images() -> None:
    compose = yaml.safe_load((CLUSTER / "compose.yaml").read_text())
    images = {service["image"] for service in compose["services"].values()}
    text = (CLUSTER / "kubernetes.yaml").read_text()
    shared = {image for image in images if image.startswith(("flink", "apache"))}
    assert len(shared) == 2
    assert all(f"image: {image}\n" in text for image in shared)
