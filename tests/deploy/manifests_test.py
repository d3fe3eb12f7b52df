"""Kubernetes manifests and the compose file: by their published schemas, by one another, and by what the server says of its own
settings.

    python3 manifests_test.py PERCEPTROND        # needs python3-yaml and python3-jsonschema
"""

import copy
import json
import pathlib
import re
import sys
import unittest

import yaml

from deployed import DEPLOY, ROOT, compose, image_environment, manifest, manifests, prometheus_rule, seconds, settings, unit
from published_schemas import Schemas

DRAIN_SECONDS = None


def setUpModule():
    global DRAIN_SECONDS
    DRAIN_SECONDS = seconds(settings(sys.argv[1], {})["drain-timeout"])


class ServerSettingsTest(unittest.TestCase):
    def known(self, environment):
        """Each variable is one of the server's, and does something."""
        default = settings(sys.argv[1], {})
        for name, value in environment.items():
            flag = name.removeprefix("PERCEPTROND_").lower().replace("_", "-")
            self.assertIn(flag, default, name)
            # An address by itself is refused.
            said = settings(sys.argv[1], {"PERCEPTROND_INSECURE": "true", name: value})[flag]
            if isinstance(said, bool):
                said = str(said).lower()
            self.assertEqual(said if isinstance(said, str) else said[0], value)

    def test_the_image_the_pod_and_the_unit_set_what_the_server_knows(self):
        container = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"][0]
        self.known(image_environment())
        self.known({one["name"]: one["value"] for one in container["env"]})
        self.known(dict(one.split("=", 1) for one in unit()["Environment"]))

    def test_the_image_is_refused_by_itself_and_started_by_pod_compose_and_the_documented_command(self):
        with self.assertRaisesRegex(AssertionError, "other machines can reach"):
            settings(sys.argv[1], image_environment())
        (container,) = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"]
        (run,) = re.findall(r"docker run ((?:.*\\\n)*.*)", (ROOT / "docs/operate.md").read_text())
        for more in ({one["name"]: one["value"] for one in container["env"]}, compose()["services"]["perceptrond"]["environment"],
                     dict(one.split("=", 1) for one in re.findall(r"-e (\S+)", run))):
            self.assertTrue(settings(sys.argv[1], image_environment() | more)["insecure"])

    def test_each_waits_longer_than_the_server_drains(self):
        self.assertGreater(manifest("StatefulSet")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], DRAIN_SECONDS)
        self.assertGreater(seconds(compose()["services"]["perceptrond"]["stop_grace_period"]), DRAIN_SECONDS)
        self.assertGreater(int(unit()["TimeoutStopSec"][0]), DRAIN_SECONDS)


class KubernetesTest(unittest.TestCase):
    def setUp(self):
        self.pod = manifest("StatefulSet")["spec"]["template"]["spec"]
        (self.container,) = self.pod["containers"]

    def test_the_published_schemas_have_nothing_to_say(self):
        schemas = Schemas()
        for one in [*manifests(), prometheus_rule()]:
            self.assertEqual(schemas.of_manifest(one), [], one["kind"])

    def test_the_published_schemas_find_what_is_wrong(self):
        schemas = Schemas()
        wrong = manifest("StatefulSet")
        wrong["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["grpc"]["port"] = "grpc"
        self.assertEqual(len(schemas.of_manifest(wrong)), 1)
        wrong = manifest("StatefulSet")
        wrong["spec"]["template"]["spec"]["terminationGracePeriod"] = 60
        self.assertEqual(len(schemas.of_manifest(wrong)), 1)
        wrong = manifest("ServiceMonitor")
        wrong["spec"]["endpoints"][0]["interval"] = "often"
        self.assertEqual(len(schemas.of_manifest(wrong)), 1)
        wrong = prometheus_rule()
        wrong["spec"]["groups"][0]["rules"][0]["until"] = "5m"
        self.assertEqual(len(schemas.of_manifest(wrong)), 1)

    def test_kustomize_gets_every_manifest(self):
        listed = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["resources"]
        there = {path.name for path in (DEPLOY / "kubernetes").glob("*.yaml")} - {"kustomization.yaml"}
        self.assertEqual(set(listed), there)

    def test_probes_ask_grpcs_health_service_on_the_port_of_the_image(self):
        port = int(image_environment()["PERCEPTROND_ADDRESS"].rsplit(":", 1)[1])
        ports = {one["name"]: one["containerPort"] for one in self.container["ports"]}
        self.assertEqual(ports, {"grpc": port, "metrics": int(image_environment()["PERCEPTROND_METRICS_ADDRESS"].rsplit(":", 1)[1])})
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual(self.container[probe]["grpc"]["port"], port, probe)

    def test_the_pod_is_the_images_user_and_may_write_its_volume_only(self):
        user = int(re.search(r"^USER (\d+):", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[1])
        self.assertEqual([self.pod["securityContext"][name] for name in ("runAsUser", "runAsGroup", "fsGroup")], [user] * 3)
        self.assertTrue(self.pod["securityContext"]["runAsNonRoot"])
        self.assertEqual(self.pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertFalse(self.pod["automountServiceAccountToken"])
        own = self.container["securityContext"]
        self.assertEqual(own, {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
        self.assertEqual([mount["mountPath"] for mount in self.container["volumeMounts"]], [image_environment()["PERCEPTROND_DATA_DIR"]])
        claimed = [claim["metadata"]["name"] for claim in manifest("StatefulSet")["spec"]["volumeClaimTemplates"]]
        self.assertEqual([mount["name"] for mount in self.container["volumeMounts"]], claimed)

    def test_the_pod_gets_memory_for_its_budget_and_as_much_again(self):
        (budget,) = [one["value"] for one in self.container["env"] if one["name"] == "PERCEPTROND_MEMORY_BUDGET"]
        limit = self.container["resources"]["limits"]["memory"]
        self.assertEqual((budget[-3:], limit[-2:]), ("GiB", "Gi"))
        self.assertGreaterEqual(int(limit[:-2]), 2 * int(budget[:-3]))

    def test_service_and_monitor_find_the_pod_under_the_job_that_the_rules_ask_for(self):
        labels = manifest("StatefulSet")["spec"]["template"]["metadata"]["labels"]
        service, monitor = manifest("Service"), manifest("ServiceMonitor")
        self.assertLessEqual(service["spec"]["selector"].items(), labels.items())
        self.assertEqual(manifest("StatefulSet")["spec"]["serviceName"], service["metadata"]["name"])
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), service["metadata"]["labels"].items())
        self.assertIn(monitor["spec"]["endpoints"][0]["port"], [port["name"] for port in service["spec"]["ports"]])
        (job,) = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"]
        self.assertEqual(service["metadata"]["name"], job["job_name"])

    def test_the_network_policy_is_for_the_pod_opens_its_ports_alone_and_lets_it_call_nobody(self):
        policy = manifest("NetworkPolicy")["spec"]
        labels = manifest("StatefulSet")["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(policy["podSelector"]["matchLabels"].items(), labels.items())
        self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
        self.assertEqual(policy["egress"], [])
        opened = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
        self.assertEqual(sorted(opened), sorted(port["name"] for port in self.container["ports"]))
        for rule in policy["ingress"]:
            self.assertTrue(rule["from"])

    def test_the_rule_for_the_operator_holds_every_rule(self):
        groups = [group for path in sorted((DEPLOY / "prometheus/rules").glob("*.yml")) for group in yaml.safe_load(path.read_text())["groups"]]
        self.assertEqual(prometheus_rule()["spec"]["groups"], groups)


class ImageTest(unittest.TestCase):
    """What can be seen without building it: container_test.py does that."""

    def test_its_version_is_the_projects_and_the_pods(self):
        (version,) = re.findall(r"^project\(perceptrond VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
        self.assertIn(f"\nARG VERSION={version}\n", (ROOT / "Dockerfile").read_text())
        image = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"][0]["image"]
        self.assertEqual(image, f"perceptrond:{version}")

    def test_its_base_is_named_by_digest(self):
        (base,) = re.findall(r"^ARG BASE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        self.assertRegex(base, r"^debian:bookworm-\d{8}-slim@sha256:[0-9a-f]{64}$")

    def test_what_it_copies_is_let_in(self):
        copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        allowed = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
        self.assertEqual({path for line in copied for path in line.split()}, allowed)


class ComposeTest(unittest.TestCase):
    def test_the_published_schema_has_nothing_to_say_and_finds_what_is_wrong(self):
        schemas = Schemas()
        self.assertEqual(schemas.of_compose(compose()), [])
        wrong = copy.deepcopy(compose())
        wrong["services"]["grafana"]["port"] = ["3000:3000"]
        self.assertEqual(len(schemas.of_compose(wrong)), 1)

    def test_images_of_others_are_named_by_digest(self):
        for name, service in compose()["services"].items():
            if "build" not in service:
                self.assertRegex(service["image"], r":[^@]+@sha256:[0-9a-f]{64}$", name)

    def test_what_is_mounted_is_there_and_each_volume_is_declared(self):
        for name, service in compose()["services"].items():
            for volume in service["volumes"]:
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue((DEPLOY / source).exists(), f"{name}: {source}")
                else:
                    self.assertIn(source, compose()["volumes"], name)

    def test_what_the_documents_say_to_ask_is_published(self):
        """On the loopback, under the number that it has in the container, by compose and by the documented docker command."""
        ports = [image_environment()[name].rsplit(":", 1)[1] for name in ("PERCEPTROND_ADDRESS", "PERCEPTROND_METRICS_ADDRESS")]
        published = [f"127.0.0.1:{port}:{port}" for port in ports]
        self.assertEqual(compose()["services"]["perceptrond"]["ports"], published)
        (run,) = re.findall(r"docker run ((?:.*\\\n)*.*)", (ROOT / "docs/operate.md").read_text())
        self.assertEqual(re.findall(r"-p (\S+)", run), published)
        reached = {port.split(":")[1] for service in compose()["services"].values() for port in service["ports"]}
        for document in ("README.md", "docs/operate.md", "docs/runbook.md"):
            asked = set(re.findall(r"http://127\.0\.0\.1:(\d+)", (ROOT / document).read_text()))
            self.assertIn(ports[1], asked, document)
            self.assertLessEqual(asked, reached, document)

    def test_nothing_is_served_to_other_machines(self):
        for name, service in compose()["services"].items():
            for port in service["ports"]:
                self.assertTrue(port.startswith("127.0.0.1:"), f"{name}: {port}")

    def test_grafana_finds_the_data_source_and_the_dashboard_which_is_its_first_page(self):
        services = compose()["services"]
        mounts = {volume.split(":")[1]: DEPLOY / volume.split(":")[0] for volume in services["grafana"]["volumes"]}
        provisioned = mounts["/etc/grafana/provisioning"]
        (provider,) = yaml.safe_load((provisioned / "dashboards/perceptrond.yml").read_text())["providers"]
        dashboards = mounts[provider["options"]["path"]]
        home = pathlib.PurePath(services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
        self.assertEqual(str(home.parent), provider["options"]["path"])
        self.assertEqual(json.loads((dashboards / home.name).read_text())["title"], "perceptrond")
        (source,) = yaml.safe_load((provisioned / "datasources/prometheus.yml").read_text())["datasources"]
        host, port = re.fullmatch(r"http://(\w+):(\d+)", source["url"]).groups()
        self.assertIn(host, services)
        self.assertTrue(services[host]["ports"][0].endswith(f":{port}"))
        self.assertTrue(source["isDefault"])
        interval = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["global"]["scrape_interval"]
        self.assertEqual(source["jsonData"]["timeInterval"], interval)

    def test_prometheus_scrapes_the_service(self):
        (target,) = yaml.safe_load((DEPLOY / "prometheus/targets/perceptrond.yml").read_text())
        host, port = target["targets"][0].split(":")
        self.assertIn(host, compose()["services"])
        self.assertTrue(image_environment()["PERCEPTROND_METRICS_ADDRESS"].endswith(f":{port}"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
