"""Readers of the files of deploy/."""

import pathlib
import re
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd/perceptrond.service"
KUSTOMIZATIONS = ["kubernetes", "fleet/kubernetes", "proxy"]
COMPOSE_FILES = ["compose.yaml", "fleet/compose.yaml"]
RULES = sorted((DEPLOY / "prometheus/rules").glob("*.yml"), reverse=True)


def listed(directory):
    """The manifests that a kustomization has."""
    names = yaml.safe_load((DEPLOY / directory / "kustomization.yaml").read_text())["resources"]
    return [manifest for name in names for manifest in yaml.safe_load_all((DEPLOY / directory / name).read_text())]


def rule_groups(paths=tuple(RULES)):
    """Prometheus' rules, as they are grouped in these files."""
    return [group for path in paths for group in yaml.safe_load(path.read_text())["groups"]]


def prometheus_rule():
    script = DEPLOY / "kubernetes/prometheusrule.sh"
    return yaml.safe_load(subprocess.run(["sh", script], check=True, capture_output=True, text=True).stdout)


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
