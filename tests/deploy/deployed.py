"""What is in deploy/, read; and what the server makes of the settings in it."""

import os
import pathlib
import re
import subprocess
import tomllib

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd/perceptrond.service"


def listed(directory):
    """The manifests that a kustomization has."""
    names = yaml.safe_load((DEPLOY / directory / "kustomization.yaml").read_text())["resources"]
    return [manifest for name in names for manifest in yaml.safe_load_all((DEPLOY / directory / name).read_text())]


def manifests():
    return listed("kubernetes")


def manifest(kind):
    (found,) = [one for one in manifests() if one["kind"] == kind]
    return found


def prometheus_rule():
    script = DEPLOY / "kubernetes/prometheusrule.sh"
    return yaml.safe_load(subprocess.run(["sh", script], check=True, capture_output=True, text=True).stdout)


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def unit():
    """{setting: [values]} of the section [Service]."""
    settings = {}
    for line in UNIT.read_text().split("[Service]")[1].split("[Install]")[0].splitlines():
        if re.match(r"\w+=", line):
            name, value = line.split("=", 1)
            settings.setdefault(name, []).append(value)
    return settings


def image_environment():
    return dict(re.findall(r"\b(PERCEPTROND_\w+)=(\S+)", (ROOT / "Dockerfile").read_text().split("\nENV ")[1].split("\nUSER")[0]))


def settings(server, environment):
    """What this server program makes of these variables."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PERCEPTROND_")}
    done = subprocess.run([server, "--print-config"], env=clean | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return tomllib.loads(done.stdout)


def seconds(text):
    assert text.endswith("s") and text[:-1].isdigit(), text
    return int(text[:-1])
