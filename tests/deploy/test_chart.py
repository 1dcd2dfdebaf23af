"""The chart renders, for every example, what Kubernetes takes."""

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.deploy.chart import (
    CHART,
    EXAMPLES,
    LEAST,
    ROOT,
    config_of,
    manifests,
    of_kind,
    parsed,
    refusal,
    rendered,
)
from tests.deploy.tools import go_tool, own_go_tool, said
from tests.operate.prometheus import installed

KINDS = Path(__file__).with_name("kinds")
KUBERNETES = ("1.28", "1.34")
_OF_OTHERS = {"PrometheusRule", "ServiceMonitor"}
"""Kinds that Kubernetes itself does not know."""
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)


def containers(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        one["name"]: one for one in of_kind(found, "Deployment")["spec"]["template"]["spec"]["containers"]
    }


def test_examples_are_those_that_the_page_names() -> None:
    page = (ROOT / "deploy" / "docs" / "deploying-kubernetes.md").read_text(encoding="utf-8")

    assert set(re.findall(r"^\| `([\w-]+\.yaml)` \|", page, re.MULTILINE)) == {file.name for file in EXAMPLES}


@each_example
def test_chart_is_without_lint(example: Path) -> None:
    assert "0 chart(s) failed" in said([go_tool("helm"), "lint", "--strict", CHART, "--values", example])


@each_example
@pytest.mark.parametrize("kubernetes", KUBERNETES)
def test_kubernetes_knows_every_field(example: Path, kubernetes: str) -> None:
    for one in parsed(rendered(example)):
        if one["kind"] not in _OF_OTHERS:
            kubernetes_validate.validate(one, kubernetes, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    deployment = of_kind(manifests(LEAST), "Deployment")
    deployment["spec"]["replica"] = 1

    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(deployment, KUBERNETES[0], strict=True)


@pytest.mark.parametrize(("values", "limit"), [({}, "4Gi"), ({"tmpSizeLimit": "512Mi"}, "512Mi")])
def test_what_a_pod_may_write_beside_its_tables_is_limited(values: dict[str, Any], limit: str) -> None:
    found = manifests(LEAST | values)

    spec = of_kind(found, "Deployment")["spec"]["template"]["spec"]
    empty = {one["name"]: one["emptyDir"] for one in spec["volumes"] if "emptyDir" in one}
    assert empty == {"tmp": {"sizeLimit": limit}}
    for one in containers(found).values():
        assert [mount["mountPath"] for mount in one["volumeMounts"] if mount["name"] == "tmp"] == ["/tmp"]  # noqa: S108
        # What is not mounted cannot be written.
        assert one["securityContext"]["readOnlyRootFilesystem"] is True


@each_example
def test_operator_of_prometheus_knows_every_field(example: Path) -> None:
    for one in parsed(rendered(example)):
        if one["kind"] in _OF_OTHERS:
            said([own_go_tool(KINDS)], text=yaml.safe_dump(one))


def test_a_field_that_the_operator_does_not_know_is_found() -> None:
    monitor = of_kind(parsed(rendered(CHART / "examples" / "monitored.yaml")), "ServiceMonitor")
    monitor["spec"]["endpoints"][0]["intervall"] = "30s"

    assert "intervall" in said([own_go_tool(KINDS)], text=yaml.safe_dump(monitor), refused=True)


def test_one_pod_stops_before_the_next_starts_and_both_containers_share_its_volume() -> None:
    found = manifests(LEAST)

    spec = of_kind(found, "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert containers(found)["driver"]["args"] == ["run"]
    mounts = {
        name: next(mount for mount in one["volumeMounts"] if mount["name"] == "tables")
        for name, one in containers(found).items()
    }
    assert mounts == {
        "driver": {"name": "tables", "mountPath": "/data"},
        "serve": {"name": "tables", "mountPath": "/data", "readOnly": True},
    }


@pytest.mark.parametrize(
    "root",
    [
        "s3://bucket/lagwise",
        "az://container/lagwise",
        "abfss://container@account.dfs.core.windows.net/lagwise",
    ],
)
def test_two_pods_share_a_bucket_without_a_claim(root: str) -> None:
    found = manifests(with_tables(root=root, checkpoint="/data/checkpoint") | {"standby": True})

    volumes = of_kind(found, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "tables", "emptyDir": {}} in volumes
    assert "PersistentVolumeClaim" not in {one["kind"] for one in found}


@pytest.mark.parametrize("standby", [False, True])
def test_pod_with_tables_in_a_bucket_does_not_fence_one_that_runs(standby: bool) -> None:
    found = manifests(
        with_tables(root="s3://bucket/lagwise", checkpoint="/data/checkpoint") | {"standby": standby}
    )

    assert of_kind(found, "Deployment")["spec"]["replicas"] == (2 if standby else 1)
    driver = containers(found)["driver"]
    assert driver["args"] == ["run", "--standby"]
    assert driver["readinessProbe"]["httpGet"]["path"] == "/healthz"


@pytest.mark.parametrize(
    ("values", "args"),
    [
        ({}, ["run", "--take-over"]),
        (
            {"standby": True, "persistence": {"accessMode": "ReadWriteMany"}},
            ["run", "--standby", "--take-over"],
        ),
    ],
)
def test_driver_publishes_though_other_tables_did_where_it_is_told_to(
    values: dict[str, Any], args: list[str]
) -> None:
    found = manifests(LEAST | {"takeOver": True} | values)

    assert containers(found)["driver"]["args"] == args


def test_bucket_without_a_folder_for_the_checkpoint_is_refused() -> None:
    for root in ("s3://bucket/lagwise", "az://container/lagwise"):
        assert "checkpoint" in refusal(with_tables(root=root))


def with_tables(**tables: str) -> dict[str, Any]:
    """The least values, with these keys of `[tables]`."""
    return LEAST | {"config": LEAST["config"] | {"tables": tables}}


def test_two_pods_share_a_volume_that_several_nodes_may_write() -> None:
    found = manifests(LEAST | {"standby": True, "persistence": {"accessMode": "ReadWriteMany"}})

    spec = of_kind(found, "Deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    driver = containers(found)["driver"]
    assert driver["args"] == ["run", "--standby"]
    # The one that waits is never at /readyz, and an update would wait for it for ever.
    assert driver["readinessProbe"]["httpGet"]["path"] == "/healthz"
    assert of_kind(found, "PersistentVolumeClaim")["spec"]["accessModes"] == ["ReadWriteMany"]


def test_probes_ask_the_ports_of_the_configuration() -> None:
    config = LEAST["config"] | {"health": {"port": 9001}, "serve": {"port": 9000}}
    found = containers(manifests({"config": config}))

    for name, port in {"driver": 9001, "serve": 9000}.items():
        (declared,) = found[name]["ports"]
        assert declared["containerPort"] == port
        asked = {
            found[name][f"{probe}Probe"]["httpGet"]["port"] for probe in ("startup", "liveness", "readiness")
        }
        assert asked == {declared["name"]}


def test_driver_that_waits_for_kafka_is_not_ready_and_yet_lives() -> None:
    driver = containers(manifests(LEAST))["driver"]

    assert driver["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert driver["livenessProbe"]["httpGet"]["path"] == "/healthz"


@each_example
def test_pods_have_no_right_that_they_do_not_need(example: Path) -> None:
    pod = of_kind(parsed(rendered(example)), "Deployment")["spec"]["template"]["spec"]

    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for one in pod["containers"]:
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_user_of_the_pods_is_the_one_of_the_image() -> None:
    user = of_kind(manifests(LEAST), "Deployment")["spec"]["template"]["spec"]["securityContext"]["runAsUser"]

    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert f"USER {user}:{user}" in dockerfile
    assert f"--uid {user}" in dockerfile


def test_another_configuration_starts_the_pods_again() -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = of_kind(manifests(values), "Deployment")["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/config"])

    other = {"config": LEAST["config"] | {"trigger": {"interval_s": 60}}}
    assert checksum(LEAST) == checksum(LEAST)
    assert checksum(LEAST) != checksum(other)


def test_release_has_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert chart["version"] == chart["appVersion"] == version("lagwise")
    for file in ("Dockerfile", "compose.yaml", "spark-operator/lagwise.yaml", "spark-operator/Dockerfile"):
        named = re.findall(
            r"(?:lagwise|lagwise-spark|VERSION)[:=](\d\S+)", (ROOT / "deploy" / file).read_text("utf-8")
        )
        assert set(named) == {version("lagwise")}, file


def test_rules_of_the_chart_are_those_of_the_monitoring(tmp_path: Path) -> None:
    url = "https://git.example.org/lagwise/blob/main/"
    rules = {"monitoring": {"rules": {"enabled": True, "runbookUrl": url}}}
    spec = of_kind(manifests(LEAST | rules), "PrometheusRule")["spec"]

    source = (ROOT / "deploy" / "monitoring" / "alerts.yaml").read_text(encoding="utf-8")
    assert spec == yaml.safe_load(source.replace("runbook_url: ", f"runbook_url: {url}"))
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    assert "11 rules found" in said([installed("promtool"), "check", "rules", file])


def test_targets_of_the_monitor_have_the_jobs_that_the_rules_go_by() -> None:
    found = manifests(LEAST | {"monitoring": {"serviceMonitor": {"enabled": True}}})

    ports = {port["name"] for port in of_kind(found, "Service")["spec"]["ports"]}
    jobs = {one["port"]: one["relabelings"] for one in of_kind(found, "ServiceMonitor")["spec"]["endpoints"]}
    assert jobs == {
        "http": [{"targetLabel": "job", "replacement": "lagwise"}],
        "driver": [{"targetLabel": "job", "replacement": "lagwise-driver"}],
    }
    assert jobs.keys() == ports


def test_prometheus_logs_in_to_what_is_served_and_not_to_the_driver() -> None:
    authorization = {"credentials": {"name": "readers", "key": "token"}}
    values = {"monitoring": {"serviceMonitor": {"enabled": True, "authorization": authorization}}}

    monitor = of_kind(manifests(LEAST | values), "ServiceMonitor")

    told = {one["port"]: one.get("authorization") for one in monitor["spec"]["endpoints"]}
    assert told == {"http": authorization, "driver": None}


def test_dashboards_of_the_chart_are_those_of_the_monitoring() -> None:
    found = manifests(LEAST | {"monitoring": {"dashboards": {"enabled": True}}})

    data = next(one["data"] for one in found if one["metadata"]["name"] == "lagwise-dashboards")
    boards = {
        f"lagwise-{file.stem}.json": file.read_text(encoding="utf-8")
        for file in (ROOT / "deploy" / "monitoring").glob("*.json")
    }
    assert data == boards


def test_policy_lets_the_driver_reach_names_and_brokers_and_nothing_else() -> None:
    brokers = [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    policy = {"networkPolicy": {"enabled": True, "brokers": brokers, "brokerPorts": [9093]}}
    spec = of_kind(manifests(LEAST | policy), "NetworkPolicy")["spec"]

    assert spec["policyTypes"] == ["Ingress", "Egress"]
    names, kafka = spec["egress"]
    assert {(one["port"], one["protocol"]) for one in names["ports"]} == {(53, "UDP"), (53, "TCP")}
    assert kafka == {"ports": [{"port": 9093, "protocol": "TCP"}], "to": brokers}
    (test,) = spec["ingress"]
    assert test["from"] == [{"podSelector": {"matchLabels": of_kind_labels("Pod", policy)}}]


def test_policy_lets_pods_reach_the_store_of_their_tables_and_what_else_is_named() -> None:
    store = [{"ipBlock": {"cidr": "10.9.0.0/16"}}]
    tokens = {"ports": [{"port": 8443, "protocol": "TCP"}]}
    values = {
        "config": {
            **LEAST["config"],
            "tables": {"root": "s3://bucket/lagwise", "checkpoint": "/data/checkpoint"},
        },
        "networkPolicy": {
            "enabled": True,
            "objectStore": store,
            "objectStorePorts": [9000],
            "egress": [tokens],
        },
    }

    _names, _kafka, *more = of_kind(manifests(LEAST | values), "NetworkPolicy")["spec"]["egress"]

    assert more == [{"ports": [{"port": 9000, "protocol": "TCP"}], "to": store}, tokens]


def of_kind_labels(kind: str, values: dict[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = of_kind(manifests(LEAST | values), kind)["metadata"]["labels"]
    return labels


def test_secrets_are_mounted_where_the_configuration_looks_for_them() -> None:
    found = parsed(rendered(CHART / "examples" / "sasl-ssl.yaml"))

    mounted = {
        mount["mountPath"]
        for one in containers(found).values()
        for mount in one["volumeMounts"]
        if mount["name"].startswith("secret-")
    }
    assert mounted == {"/run/secrets/lagwise/kafka-user", "/run/secrets/lagwise/kafka-ca"}
    assert '"file:/run/secrets/lagwise/kafka-user/password"' in config_of(found)


def test_page_answers_under_the_names_of_its_service_and_those_that_are_given() -> None:
    values = {"config": {**LEAST["config"], "serve": {"hosts": ["lag.example.com"]}}}

    line = re.search(r'^"hosts" = (.*)$', config_of(manifests(values)), re.MULTILINE)

    assert line
    assert json.loads(line[1]) == [
        "lagwise",
        "lagwise.default",
        "lagwise.default.svc",
        "lagwise.default.svc.cluster.local",
        "lag.example.com",
    ]


def test_serve_gets_the_secrets_that_are_named_for_it_and_all_without_a_list() -> None:
    given: dict[str, Any] = {
        "existingSecrets": ["kafka-user", "page"],
        "serve": {"existingSecrets": ["page"]},
    }

    for values, of_serve in (
        (given, {"secret-page"}),
        (given | {"serve": {}}, {"secret-kafka-user", "secret-page"}),
    ):
        found = {
            name: {m["name"] for m in one["volumeMounts"] if m["name"].startswith("secret-")}
            for name, one in containers(manifests(LEAST | values)).items()
        }
        assert found == {"driver": {"secret-kafka-user", "secret-page"}, "serve": of_serve}


def test_pod_of_the_test_runs_where_the_others_do() -> None:
    values: dict[str, Any] = {
        "image": {"pullSecrets": [{"name": "registry"}]},
        "nodeSelector": {"pool": "infra"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
    }
    pod = of_kind(manifests(LEAST | values), "Pod")["spec"]

    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert (pod["nodeSelector"], pod["tolerations"]) == (values["nodeSelector"], values["tolerations"])
    assert pod["containers"][0]["resources"].keys() == {"requests", "limits"}
