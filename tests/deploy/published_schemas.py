"""The published schemas of what deploy/ is written for, from the directory that PERCEPTROND_SCHEMAS names: they are not the project's
to carry. Without it their tests skip.

    kubernetes.json        api/openapi-spec/swagger.json of kubernetes/kubernetes
    servicemonitors.yaml   example/prometheus-operator-crd/monitoring.coreos.com_*.yaml of
    prometheusrules.yaml   prometheus-operator/prometheus-operator
    certificates.yaml      deploy/crds/cert-manager.io_*.yaml of cert-manager/cert-manager
    issuers.yaml
    compose.json           schema/compose-spec.json of compose-spec/compose-spec
    nats-values.yaml       helm/charts/nats/values.yaml of nats-io/k8s
"""

import copy
import json
import os
import pathlib
import unittest

import yaml

FILES = {"ServiceMonitor": "servicemonitors.yaml", "PrometheusRule": "prometheusrules.yaml", "Certificate": "certificates.yaml",
         "Issuer": "issuers.yaml"}


def directory():
    named = os.environ.get("PERCEPTROND_SCHEMAS")
    if not named:
        raise unittest.SkipTest("PERCEPTROND_SCHEMAS names no directory with the published schemas")
    return pathlib.Path(named)


def strict(schema):
    """The same schema without fields that it does not name, as the API server has it with fieldValidation=Strict; in the form of
    plain JSON Schema."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    if isinstance(result.get("properties"), dict) and "additionalProperties" not in result:
        result["additionalProperties"] = False
    if result.get("format") == "int-or-string" or result.get("x-kubernetes-int-or-string"):
        result.pop("type", None)
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return result


def kubernetes_schema(document, kind):
    """Of the kind in a manifest: {"apiVersion": ..., "kind": ...}."""
    group, _, version = kind["apiVersion"].rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind["kind"]}
    for name, definition in document["definitions"].items():
        if wanted in definition.get("x-kubernetes-group-version-kind", []):
            return {"$ref": f"#/definitions/{name}", "definitions": document["definitions"]}
    raise AssertionError(f"Kubernetes has no {wanted}")


def published(name):
    """A file of the directory."""
    path = directory() / name
    if not path.exists():
        raise unittest.SkipTest(f"PERCEPTROND_SCHEMAS has no {name}")
    return path


def operator_schema(path, manifest):
    definition = yaml.safe_load(path.read_text())
    version = manifest["apiVersion"].split("/")[1]
    (schema,) = [one["schema"]["openAPIV3Schema"] for one in definition["spec"]["versions"] if one["name"] == version]
    # The API server knows it, and the definition leaves it open.
    schema = copy.deepcopy(schema)
    schema["properties"]["metadata"] = {"type": "object", "additionalProperties": True}
    return strict(schema)


class Schemas:
    def __init__(self):
        import jsonschema

        self.validator = jsonschema.Draft7Validator
        self.directory = directory()
        self.kubernetes = strict(json.loads((self.directory / "kubernetes.json").read_text()))

    def complaints(self, schema, document):
        return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in self.validator(schema).iter_errors(document)]

    def of_manifest(self, manifest):
        """What is wrong with it; nothing, if nothing is."""
        if manifest["kind"] in FILES:
            schema = operator_schema(published(FILES[manifest["kind"]]), manifest)
        else:
            schema = kubernetes_schema(self.kubernetes, manifest)
        return self.complaints(schema, manifest)

    def of_compose(self, document):
        return self.complaints(json.loads((self.directory / "compose.json").read_text()), document)
