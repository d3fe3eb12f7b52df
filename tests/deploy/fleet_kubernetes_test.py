"""The fleet's manifests for Kubernetes: by their published schemas, by those of one server, and running: three pods as processes with the
settings and files that the Deployment gives them, over three nats-servers with the settings of the values for NATS's chart.

    python3 fleet_kubernetes_test.py PERCEPTROND PERCEPTRONCTL        # as root; needs nats-server, openssl
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

from containers import Container, enter_network, serving
from deployed import DEPLOY, ROOT, image_environment, listed, manifest, seconds, settings
from processes import wait_for
from published_schemas import Schemas, published

FLEET = DEPLOY / "fleet/kubernetes"
NATS_PODS = ["nats-0.nats-headless", "nats-1.nats-headless", "nats-2.nats-headless"]
PODS = ["pod-a", "pod-b", "pod-c"]
LABELS = {"app.kubernetes.io/name": "perceptrond"}
NATS_LABELS = {"app.kubernetes.io/name": "nats"}

manifests = listed("fleet/kubernetes")
values = yaml.safe_load((FLEET / "nats-values.yaml").read_text())


def the(kind, name="perceptrond"):
    (found,) = [one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


pod = the("Deployment")["spec"]["template"]
(container,) = pod["spec"]["containers"]
secrets = {mount["mountPath"]: volume["secret"]["secretName"] for mount in container["volumeMounts"] for volume in pod["spec"]["volumes"]
           if volume["name"] == mount["name"]}


class ManifestTest(unittest.TestCase):
    def test_the_published_schemas_have_nothing_to_say(self):
        schemas = Schemas()
        for one in manifests:
            self.assertEqual(schemas.of_manifest(one), [], one["kind"])

    def test_the_values_are_those_of_nats_s_chart(self):
        chart = yaml.safe_load(published("nats-values.yaml").read_text())

        def unknown(ours, theirs, path):
            for key, value in ours.items():
                if key not in theirs:
                    yield path + key
                elif isinstance(value, dict) and theirs[key]:
                    yield from unknown(value, theirs[key], f"{path}{key}.")

        self.assertEqual(list(unknown(values, chart, "")), [])
        self.assertEqual(list(unknown({"config": {"jetstrem": {}}}, chart, "")), ["config.jetstrem"])

    def test_kustomize_gets_every_manifest(self):
        names = yaml.safe_load((FLEET / "kustomization.yaml").read_text())["resources"]
        self.assertEqual(set(names), {path.name for path in FLEET.glob("*.yaml")} - {"kustomization.yaml", "nats-values.yaml", "adapter-values.yaml"})

    def test_a_pod_is_the_one_server_s_but_for_its_volume(self):
        (alone,) = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"]
        for key in ("image", "startupProbe", "livenessProbe", "resources", "securityContext"):
            self.assertEqual(container[key], alone[key], key)
        # A server whose copies are late gets no new connections.
        ready = alone["readinessProbe"]
        self.assertEqual(container["readinessProbe"], ready | {"grpc": ready["grpc"] | {"service": "perceptron.v1.PredictionService"}})
        of_pod = manifest("StatefulSet")["spec"]["template"]["spec"]["securityContext"]
        self.assertLessEqual(pod["spec"]["securityContext"].items(), of_pod.items())
        self.assertFalse(pod["spec"]["automountServiceAccountToken"])
        self.assertGreater(pod["spec"]["terminationGracePeriodSeconds"], seconds(settings(PERCEPTROND, {})["drain-timeout"]))
        self.assertEqual({next(iter(volume.keys() - {"name"})) for volume in pod["spec"]["volumes"]}, {"secret"})
        self.assertTrue(all(mount["readOnly"] for mount in container["volumeMounts"]))

    def test_each_secret_is_a_certificate_of_an_authority_here_and_the_fleet_s_signs_nothing_else(self):
        signed = {}
        for one in manifests:
            if one["kind"] == "Certificate":
                signed.setdefault(one["spec"]["issuerRef"]["name"], []).append(one["spec"]["secretName"])
        authorities = {one["metadata"]["name"]: one["spec"] for one in manifests if one["kind"] == "Issuer"}
        self.assertEqual(set(signed), set(authorities))
        for name, spec in authorities.items():
            self.assertTrue("selfSigned" in spec or spec["ca"]["secretName"] in signed["perceptrond-root"], name)
        self.assertLessEqual({*secrets.values(), values["tlsCA"]["secretName"]}, {name for names in signed.values() for name in names})
        self.assertEqual(signed["perceptrond-fleet"], [secrets["/run/secrets/fleet"]])

    def test_service_budget_autoscaler_and_monitor_are_for_the_pods(self):
        self.assertEqual(the("Deployment")["spec"]["selector"]["matchLabels"], LABELS)
        self.assertEqual(pod["metadata"]["labels"], LABELS)
        self.assertEqual(the("Service")["spec"], manifest("Service")["spec"])
        self.assertEqual(the("ServiceMonitor"), manifest("ServiceMonitor"))
        self.assertEqual(the("PodDisruptionBudget")["spec"]["selector"]["matchLabels"], LABELS)
        scaler = the("HorizontalPodAutoscaler")["spec"]
        self.assertEqual(scaler["scaleTargetRef"], {"apiVersion": "apps/v1", "kind": "Deployment", "name": "perceptrond"})
        # The autoscaler's number of pods is not overwritten by the next apply.
        self.assertNotIn("replicas", the("Deployment")["spec"])
        self.assertGreaterEqual(scaler["minReplicas"], 3)

    def test_the_autoscaler_s_lag_is_a_metric_that_the_adapter_has_a_rule_for(self):
        (lag,) = [metric["pods"]["metric"]["name"] for metric in the("HorizontalPodAutoscaler")["spec"]["metrics"] if metric["type"] == "Pods"]
        (rule,) = yaml.safe_load((FLEET / "adapter-values.yaml").read_text())["rules"]["custom"]
        self.assertTrue(rule["seriesQuery"].startswith(lag + "{"))
        self.assertIn(f"\n`{lag}` |", (ROOT / "docs/metrics.md").read_text())

    def test_the_policies_let_pods_reach_each_other_and_nats_and_nobody_else_reach_these(self):
        ours, nats = the("NetworkPolicy")["spec"], the("NetworkPolicy", "nats")["spec"]
        self.assertEqual(ours["podSelector"]["matchLabels"], LABELS)
        self.assertEqual(nats["podSelector"]["matchLabels"], NATS_LABELS)
        named = {port["name"] for port in container["ports"]}
        opened = {rule["ports"][0]["port"]: rule["from"] for rule in ours["ingress"]}
        self.assertEqual(set(opened), named)
        self.assertEqual(opened["fleet"], [{"podSelector": {"matchLabels": LABELS}}])
        alone = {rule["ports"][0]["port"]: rule["from"] for rule in manifest("NetworkPolicy")["spec"]["ingress"]}
        self.assertEqual({port: opened[port] for port in alone}, alone)
        self.assertEqual([(rule["from"], rule["ports"]) for rule in nats["ingress"]],
                         [([{"podSelector": {"matchLabels": LABELS}}], [{"port": "nats"}]),
                          ([{"podSelector": {"matchLabels": NATS_LABELS}}], [{"port": "cluster"}])])
        called = [rule["to"][0].get("podSelector", {}).get("matchLabels") for rule in ours["egress"]]
        self.assertEqual(called, [LABELS, NATS_LABELS, None])

    def test_nats_lets_the_servers_do_what_it_does_by_compose(self):
        text = (DEPLOY / "fleet/nats/nats.conf").read_text()
        (user,) = values["config"]["merge"]["accounts"]["FLEET"]["users"]
        self.assertIn(f"user: {user['user']}\n", text)
        for what, subjects in user["permissions"].items():
            self.assertEqual(json.loads(re.search(rf"{what}: (\[.*?\])", text, re.DOTALL)[1]), subjects)


class Authorities:
    """What cert-manager would make: a directory for each secret."""

    def __init__(self, directory):
        self.directory = directory
        for name in ("perceptrond-fleet", "nats"):
            self.run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}-ca.key", "-out",
                     f"{name}-ca.crt")
        for one in manifests:
            if one["kind"] == "Certificate" and not one["spec"].get("isCA"):
                self.sign(one["spec"])

    def run(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.directory, check=True, capture_output=True)

    def sign(self, spec):
        secret, issuer = self.directory / spec["secretName"], spec["issuerRef"]["name"]
        secret.mkdir()
        usages = ",".join({"server auth": "serverAuth", "client auth": "clientAuth"}[usage] for usage in spec["usages"])
        (secret / "extensions").write_text(f"subjectAltName={','.join('DNS:' + name for name in spec['dnsNames'])}\nextendedKeyUsage={usages}\n")
        subject = f"/CN={spec['commonName']}" if "commonName" in spec else "/"
        self.run("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", secret / "tls.key", "-out", secret / "request")
        self.run("x509", "-req", "-in", secret / "request", "-CA", f"{issuer}-ca.crt", "-CAkey", f"{issuer}-ca.key", "-CAcreateserial", "-days", "2",
                 "-extfile", secret / "extensions", "-out", secret / "tls.crt")
        (secret / "ca.crt").write_bytes((self.directory / f"{issuer}-ca.crt").read_bytes())
        # As the volume's defaultMode has it, for the pod's group.
        (secret / "tls.key").chmod(0o440)
        os.chown(secret / "tls.key", 0, 65532)


def nats_configuration(name, tls):
    """What the chart makes of the values, as far as it concerns a client."""
    config = values["config"]

    def with_tls(part):
        return {"cert_file": f"{tls}/tls.crt", "key_file": f"{tls}/tls.key", "ca_file": f"{tls}/ca.crt", **part["tls"]["merge"]}

    return {"server_name": name.split(".")[0], "host": name, "port": 4222, "tls": with_tls(config["nats"]),
            "jetstream": {"store_dir": "/srv/data", "max_memory_store": 0, "max_file_store": 1 << 30},
            "cluster": {"name": "nats", "host": name, "port": 6222, "no_advertise": True, "tls": with_tls(config["cluster"]),
                        "routes": [f"tls://{one}:6222" for one in NATS_PODS]},
            **config["merge"]}


class RunningTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.directory = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory(prefix="perceptrond-pods.")))
        cls.programs = {}
        (cls.directory / "secrets").mkdir()
        cls.secrets = Authorities(cls.directory / "secrets").directory
        for name in NATS_PODS:
            cls.launch(cls.nats(name))
        for name in PODS:
            cls.launch(cls.pod(name))

    @classmethod
    def launch(cls, one):
        program = one.start(cls.directory / f"{one.name}.log")
        cls.stack.callback(program.kill)
        cls.programs[one.name] = program

    @classmethod
    def nats(cls, name):
        store = cls.directory / name
        store.mkdir()
        os.chown(store, 65532, 65532)
        configuration = cls.directory / f"{name}.conf"
        configuration.write_text(json.dumps(nats_configuration(name, "/run/nats")))
        return Container(name, ["nats-server", "-c", "/run/nats.conf"], {},
                         {"/srv/data": store, "/run/nats.conf": configuration, "/run/nats": cls.secrets / values["tlsCA"]["secretName"]})

    @classmethod
    def pod(cls, name):
        own = {one["name"]: one["value"] for one in container["env"] if "value" in one}
        # Where each pod has a network of its own it listens at all addresses.
        image = {variable: value.replace("0.0.0.0", name) for variable, value in image_environment().items()}
        own = {variable: value.replace("$(POD_IP)", name) for variable, value in own.items()}
        return Container(name, [PERCEPTROND], image | own, {path: cls.secrets / secret for path, secret in secrets.items()})

    @staticmethod
    def ctl(server, *arguments):
        command = [PERCEPTRONCTL, "--server", f"{server}:7600", *map(str, arguments)]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def test_what_one_pod_learns_all_predict_with(self):
        for name in PODS:
            serving(self.programs[name], lambda name=name: self.ctl(name, "health").returncode == 0)
        wait_for("it is created", lambda: self.ctl(PODS[0], "create", "m", "--dimension", 2).returncode == 0)
        rows = self.directory / "rows.svm"
        rows.write_text("+1 0:1 1:2\n-1 0:1 1:-2\n" * 100)
        learned = self.ctl(PODS[0], "learn", "m", rows, "--index-base", 0, "--unnumbered")
        self.assertEqual(learned.returncode, 0, learned.stderr)
        for name in PODS:
            said = self.ctl(name, "predict", "m", rows, "--index-base", 0, "--summary", "-o", "json", "--min-revision", 1)
            self.assertEqual((said.returncode, said.stderr), (0, ""))
            self.assertEqual(json.loads(said.stdout)["errors"], "0")

    def test_the_pods_settings_are_known(self):
        one = self.pod(PODS[0])
        one.command.append("--print-config")
        printed = subprocess.run(one.words(), capture_output=True, text=True)
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))


if __name__ == "__main__":
    PERCEPTROND, PERCEPTRONCTL = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    if os.geteuid() != 0:
        sys.exit("fleet_kubernetes_test.py needs root: it mounts, and makes another user's files")
    # The chart's service stands for all of them.
    enter_network([f"{NATS_PODS[0]} nats", *NATS_PODS[1:], *PODS])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
