"""Kubernetes manifests and compose files, of one server, of the proxy and of a fleet: by one another, and by what the server says of its
own settings.

    python3 manifests_test.py PERCEPTROND        # needs python3-yaml
"""

import json
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest
import urllib.parse

import yaml

from deployed import COMPOSE_FILES, DEPLOY, KUSTOMIZATIONS, ROOT, RULES, image_environment, listed, prometheus_rule, rule_groups, unit

NAME = "app.kubernetes.io/name"
# Of each server, at most, to the database.
CONNECTIONS = 17
ALONE, FLEET, PROXY = (listed(name) for name in KUSTOMIZATIONS)
COMPOSED = {path: yaml.safe_load((DEPLOY / path).read_text()) for path in COMPOSE_FILES}
SERVICES = {path: composed["services"] for path, composed in COMPOSED.items()}
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def the(manifests, kind, name="perceptrond"):
    (found,) = [one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def pod_of(manifests, kind, name="perceptrond"):
    return the(manifests, kind, name)["spec"]["template"]["spec"]


STATEFUL, DEPLOYED = pod_of(ALONE, "StatefulSet"), pod_of(FLEET, "Deployment")
PODS = [STATEFUL, DEPLOYED, pod_of(PROXY, "Deployment", "perceptrond-proxy")]


def environment_of(pod):
    return {one["name"]: one["value"].replace("$(POD_IP)", "10.0.0.1") for one in pod["containers"][0]["env"] if "value" in one}


def documented_run():
    (run,) = re.findall(r"docker run ((?:.*\\\n)*.*)", (ROOT / "docs/operate.md").read_text())
    return run


def settings(environment):
    """The server's exit code and settings with these variables. Secrets are not here: another file stands for each."""
    own = {name: str(ROOT / "LICENSE") if value.startswith("/run/secrets/") else value for name, value in environment.items()}
    done = subprocess.run([sys.argv[1], "--print-config"], env=own, capture_output=True, text=True)
    return done.returncode, tomllib.loads(done.stdout) if done.returncode == 0 else done.stderr


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text)[1])


class SettingsTest(unittest.TestCase):
    def test_every_variable_is_one_of_the_server_s_and_has_the_value_that_is_set(self):
        of_unit = dict(one.split("=", 1) for one in unit()["Environment"])
        fleet = [service["environment"] for name, service in SERVICES["fleet/compose.yaml"].items() if name.startswith("perceptrond")]
        self.assertEqual(len(fleet), 3)
        for own in (image_environment(), of_unit, environment_of(STATEFUL), environment_of(DEPLOYED), *fleet):
            code, known = settings({"PERCEPTROND_INSECURE": "true", **own})
            self.assertEqual(code, 0, known)
            for name, value in own.items():
                said = known[name.removeprefix("PERCEPTROND_").lower().replace("_", "-")]
                said = ",".join(said) if isinstance(said, list) else str(said).lower() if isinstance(said, bool) else said
                self.assertEqual(said, str(ROOT / "LICENSE") if value.startswith("/run/secrets/") else value, name)

    def test_the_image_is_refused_alone_and_started_by_pod_compose_and_the_documented_command(self):
        self.assertNotEqual(settings(image_environment())[0], 0)
        of_run = dict(one.split("=", 1) for one in re.findall(r"-e (\S+)", documented_run()))
        for more in (environment_of(STATEFUL), environment_of(DEPLOYED), SERVICES["compose.yaml"]["perceptrond"]["environment"], of_run):
            code, known = settings(image_environment() | more)
            self.assertEqual(code, 0, known)

    def test_each_waits_longer_than_the_server_drains(self):
        drain = seconds(settings({})[1]["drain-timeout"])
        waits = [pod["terminationGracePeriodSeconds"] for pod in (STATEFUL, DEPLOYED)] + [int(unit()["TimeoutStopSec"][0])]
        waits += [seconds(service["stop_grace_period"]) for services in SERVICES.values() for name, service in services.items()
                  if name.startswith("perceptrond")]
        self.assertEqual(len(waits), 7)
        self.assertGreater(min(waits), drain)


class KubernetesTest(unittest.TestCase):
    def test_kustomize_gets_every_manifest(self):
        for directory in KUSTOMIZATIONS:
            names = set(yaml.safe_load((DEPLOY / directory / "kustomization.yaml").read_text())["resources"])
            there = {path.name for path in (DEPLOY / directory).glob("*.yaml") if not path.name.endswith("-values.yaml")}
            self.assertEqual(names, there - {"kustomization.yaml"}, directory)

    def test_pods_are_the_image_s_user_and_may_write_their_volume_only(self):
        user = int(re.search(r"^USER (\d+):", DOCKERFILE, re.MULTILINE)[1])
        self.assertIn(f"\nUSER {user}:{user}\n", (DEPLOY / "proxy/Dockerfile").read_text())
        for pod in PODS:
            (container,) = pod["containers"]
            of_pod = pod["securityContext"]
            self.assertEqual((of_pod["runAsUser"], of_pod["runAsGroup"], of_pod.get("fsGroup", user)), (user, user, user))
            self.assertTrue(of_pod["runAsNonRoot"])
            self.assertEqual(of_pod["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertFalse(pod["automountServiceAccountToken"])
            self.assertEqual(container["securityContext"],
                             {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
            writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
            self.assertEqual(writable, [image_environment()["PERCEPTROND_DATA_DIR"]] if pod is STATEFUL else [])

    def test_probes_ask_the_health_service_on_the_image_s_port(self):
        port, metrics = (int(image_environment()[f"PERCEPTROND_{name}"].rsplit(":", 1)[1]) for name in ("ADDRESS", "METRICS_ADDRESS"))
        for pod in (STATEFUL, DEPLOYED):
            (container,) = pod["containers"]
            ports = {one["name"]: one["containerPort"] for one in container["ports"]}
            self.assertEqual((ports["grpc"], ports["metrics"]), (port, metrics))
            self.assertEqual({container[probe]["grpc"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}, {port})
        # A server of a fleet whose copies are late gets no new connections.
        self.assertEqual(DEPLOYED["containers"][0]["readinessProbe"]["grpc"]["service"], "perceptron.v1.PredictionService")

    def test_pods_get_memory_for_their_budget_and_as_much_again(self):
        for pod in (STATEFUL, DEPLOYED):
            budget, limit = environment_of(pod)["PERCEPTROND_MEMORY_BUDGET"], pod["containers"][0]["resources"]["limits"]["memory"]
            self.assertEqual((budget[-3:], limit[-2:]), ("GiB", "Gi"))
            self.assertGreaterEqual(int(limit[:-2]), 2 * int(budget[:-3]))

    def test_everything_selects_the_pods(self):
        for manifests, kind, name in ((ALONE, "StatefulSet", "perceptrond"), (FLEET, "Deployment", "perceptrond"), (PROXY, "Deployment", "perceptrond-proxy")):
            self.assertEqual(the(manifests, kind, name)["spec"]["template"]["metadata"]["labels"], {NAME: name})
            for one in manifests:
                spec = one["spec"] if one["metadata"]["name"] == name else {}
                selector = spec.get("podSelector") or spec.get("selector")
                if selector:
                    self.assertEqual(selector.get("matchLabels", selector), {NAME: name}, one["kind"])
        for manifests in (ALONE, FLEET):
            service, monitor = the(manifests, "Service"), the(manifests, "ServiceMonitor")
            self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), service["metadata"]["labels"].items())
            self.assertIn(monitor["spec"]["endpoints"][0]["port"], [port["name"] for port in service["spec"]["ports"]])
            # The rules ask for this job.
            (job,) = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"]
            self.assertEqual(service["metadata"]["name"], job["job_name"])
        scaler = the(FLEET, "HorizontalPodAutoscaler")["spec"]
        self.assertEqual(scaler["scaleTargetRef"], {"apiVersion": "apps/v1", "kind": "Deployment", "name": "perceptrond"})
        # The autoscaler's number of pods is not overwritten by the next apply.
        self.assertNotIn("replicas", the(FLEET, "Deployment")["spec"])

    def test_the_network_policies_open_each_port_to_those_named_and_let_one_server_call_nobody(self):
        for manifests, pod in ((ALONE, STATEFUL), (FLEET, DEPLOYED)):
            policy = the(manifests, "NetworkPolicy")["spec"]
            self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
            opened = {port["port"]: rule["from"] for rule in policy["ingress"] for port in rule["ports"]}
            self.assertEqual(set(opened), {port["name"] for port in pod["containers"][0]["ports"]})
            self.assertTrue(all(opened.values()))
        self.assertEqual(the(ALONE, "NetworkPolicy")["spec"]["egress"], [])
        self.assertEqual(opened["fleet"], [{"podSelector": {"matchLabels": {NAME: "perceptrond"}}}])

    def test_each_secret_of_the_fleet_is_made_and_each_variable_names_a_file_in_one(self):
        mounted = {mount["mountPath"]: mount["name"] for mount in DEPLOYED["containers"][0]["volumeMounts"]}
        secrets = {volume["name"]: volume["secret"]["secretName"] for volume in DEPLOYED["volumes"]}
        made = {one["spec"]["secretName"] for one in FLEET if one["kind"] == "Certificate"}
        # CloudNativePG's names.
        database = the(FLEET, "Cluster", "postgresql")["metadata"]["name"]
        made |= {f"{database}-ca", f"{database}-app"}
        passwords = {one["valueFrom"]["secretKeyRef"]["name"] for one in DEPLOYED["containers"][0]["env"] if "secretKeyRef" in one.get("valueFrom", {})}
        self.assertLessEqual({secrets[name] for name in mounted.values()} | passwords, made)
        for name, value in environment_of(DEPLOYED).items():
            if value.startswith("/run/secrets"):
                self.assertIn(str(pathlib.PurePath(value).parent), mounted, name)

    def test_a_commit_of_the_fleet_is_on_two_disks_and_connections_are_enough_for_all_its_pods(self):
        database = the(FLEET, "Cluster", "postgresql")["spec"]
        journal = urllib.parse.urlsplit(environment_of(DEPLOYED)["PERCEPTROND_JOURNAL"])
        self.assertEqual((journal.hostname, journal.username, journal.path[1:]),
                         ("postgresql-rw", database["bootstrap"]["initdb"]["owner"], database["bootstrap"]["initdb"]["database"]))
        composed = SERVICES["fleet/compose.yaml"]["perceptrond1"]["environment"]["PERCEPTROND_JOURNAL"]
        for uri in (journal.query, urllib.parse.urlsplit(composed).query):
            self.assertIn("sslmode=verify-full", uri)
        self.assertEqual(environment_of(DEPLOYED)["PERCEPTROND_DURABILITY"], "replicated")
        self.assertEqual((database["postgresql"]["synchronous"]["number"], database["postgresql"]["synchronous"]["dataDurability"]), (1, "required"))
        pods = the(FLEET, "HorizontalPodAutoscaler")["spec"]["maxReplicas"] + the(FLEET, "Deployment")["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
        self.assertGreater(int(database["postgresql"]["parameters"]["max_connections"]), CONNECTIONS * pods + 20)
        settings = dict(re.findall(r"^(\w+) = '?(.*?)'?$", (DEPLOY / "fleet/postgresql/postgresql.conf").read_text(), re.MULTILINE))
        self.assertGreater(int(settings["max_connections"]), CONNECTIONS * 3 + 20)
        standbys = [name for name in SERVICES["fleet/compose.yaml"] if name.startswith("postgres")]
        self.assertEqual(settings["synchronous_standby_names"], f"ANY 1 ({', '.join(standbys)})")
        self.assertEqual(re.fullmatch(r"\w+://\w+@(.*?)/.*", composed)[1].split(","), standbys)

    def test_the_autoscaler_s_lag_is_a_metric_that_the_adapter_has_a_rule_for(self):
        (lag,) = [metric["pods"]["metric"]["name"] for metric in the(FLEET, "HorizontalPodAutoscaler")["spec"]["metrics"] if metric["type"] == "Pods"]
        (rule,) = yaml.safe_load((DEPLOY / "fleet/kubernetes/adapter-values.yaml").read_text())["rules"]["custom"]
        self.assertTrue(rule["seriesQuery"].startswith(lag + "{"))
        self.assertIn(f"\n`{lag}` |", (ROOT / "docs/metrics.md").read_text())

    def test_the_rule_for_the_operator_holds_every_rule(self):
        self.assertEqual(prometheus_rule()["spec"]["groups"], rule_groups(sorted(RULES)))


class ImageTest(unittest.TestCase):
    """Checks without a build; container_test.py builds it."""

    def test_its_version_is_the_project_s_and_the_pods(self):
        (version,) = re.findall(r"^project\(perceptrond VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
        self.assertIn(f"\nARG VERSION={version}\n", DOCKERFILE)
        self.assertEqual({pod["containers"][0]["image"].split(":")[1] for pod in PODS}, {version})

    def test_all_images_have_one_base_that_is_named_by_digest(self):
        (base,) = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE, re.MULTILINE)
        self.assertRegex(base, r"^debian:bookworm-\d{8}-slim@sha256:[0-9a-f]{64}$")
        for other in ("proxy", "fleet/postgresql"):
            self.assertIn(f"\nFROM {base}\n", (DEPLOY / other / "Dockerfile").read_text())

    def test_what_it_copies_is_let_in(self):
        copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
        allowed = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
        self.assertEqual({path for line in copied for path in line.split()}, allowed)


class ComposeTest(unittest.TestCase):
    EACH = [(path, name, service) for path, services in SERVICES.items() for name, service in services.items()]

    def test_images_of_others_are_named_by_digest_and_ours_are_narrow(self):
        for path, name, service in self.EACH:
            if "build" in service:
                narrow = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
                self.assertEqual({key: service.get(key) for key in narrow}, narrow, f"{path}: {name}")
            elif "extends" not in service:
                self.assertRegex(service["image"], r":[^@]+@sha256:[0-9a-f]{64}$", f"{path}: {name}")

    def test_what_is_mounted_is_there_and_volumes_and_secrets_are_declared(self):
        for path, name, service in self.EACH:
            for source in (volume.split(":")[0] for volume in service.get("volumes", [])):
                self.assertTrue((DEPLOY / path).parent.joinpath(source).exists() if source.startswith(".") else source in COMPOSED[path]["volumes"], source)
            self.assertLessEqual(set(service.get("secrets", [])), set(COMPOSED[path].get("secrets", {})), name)

    def test_nothing_is_served_to_other_machines(self):
        for _, name, service in self.EACH:
            self.assertTrue(all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name)

    def test_what_the_documents_say_to_ask_is_published(self):
        """Under the number that it has in the container, by compose and by the documented docker command."""
        services = SERVICES["compose.yaml"]
        ports = [image_environment()[name].rsplit(":", 1)[1] for name in ("PERCEPTROND_ADDRESS", "PERCEPTROND_METRICS_ADDRESS")]
        published = [f"127.0.0.1:{port}:{port}" for port in ports]
        self.assertEqual(services["perceptrond"]["ports"], published)
        self.assertEqual(re.findall(r"-p (\S+)", documented_run()), published)
        reached = {port.split(":")[1] for service in services.values() for port in service["ports"]}
        for document in ("README.md", "docs/operate.md", "docs/runbook.md"):
            self.assertLessEqual(set(re.findall(r"http://127\.0\.0\.1:(\d+)", (ROOT / document).read_text())), reached, document)

    def test_grafana_finds_the_data_source_and_the_dashboard_which_is_its_first_page(self):
        services = SERVICES["compose.yaml"]
        mounts = {volume.split(":")[1]: DEPLOY / volume.split(":")[0] for volume in services["grafana"]["volumes"]}
        provisioned = mounts["/etc/grafana/provisioning"]
        (provider,) = yaml.safe_load((provisioned / "dashboards/perceptrond.yml").read_text())["providers"]
        home = pathlib.PurePath(services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
        self.assertEqual(str(home.parent), provider["options"]["path"])
        self.assertEqual(json.loads((mounts[provider["options"]["path"]] / home.name).read_text())["title"], "perceptrond")
        (source,) = yaml.safe_load((provisioned / "datasources/prometheus.yml").read_text())["datasources"]
        host, port = re.fullmatch(r"http://(\w+):(\d+)", source["url"]).groups()
        self.assertTrue(source["isDefault"] and services[host]["ports"][0].endswith(f":{port}"))
        interval = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["global"]["scrape_interval"]
        self.assertEqual(source["jsonData"]["timeInterval"], interval)

    def test_prometheus_and_the_balancer_know_every_server(self):
        (targets,) = yaml.safe_load((DEPLOY / "prometheus/targets/perceptrond.yml").read_text())
        self.assertEqual(targets["targets"], ["perceptrond:" + image_environment()["PERCEPTROND_METRICS_ADDRESS"].rsplit(":", 1)[1]])
        fleet = {name: service["environment"] for name, service in SERVICES["fleet/compose.yaml"].items() if name.startswith("perceptrond")}
        (targets,) = yaml.safe_load((DEPLOY / "fleet/targets/perceptrond.yml").read_text())
        self.assertEqual(targets["targets"], [own["PERCEPTROND_METRICS_ADDRESS"] for own in fleet.values()])
        balanced = re.findall(r"^  server (\S+) (\S+)$", (DEPLOY / "fleet/haproxy.cfg").read_text(), re.MULTILINE)
        self.assertEqual(balanced, [(name, own["PERCEPTROND_ADDRESS"]) for name, own in fleet.items()])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
