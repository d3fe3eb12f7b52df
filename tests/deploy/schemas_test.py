"""What is in deploy/ obeys the published schemas of what it is written for. They are not the project's to carry: the test is skipped unless
PERCEPTROND_SCHEMAS names a directory with

    kubernetes.json        api/openapi-spec/swagger.json of kubernetes/kubernetes
    servicemonitors.yaml   example/prometheus-operator-crd/monitoring.coreos.com_*.yaml of
    prometheusrules.yaml   prometheus-operator/prometheus-operator
    certificates.yaml      deploy/crds/cert-manager.io_*.yaml of cert-manager/cert-manager
    issuers.yaml
    compose.json           schema/compose-spec.json of compose-spec/compose-spec

    python3 schemas_test.py        # needs python3-yaml and python3-jsonschema
"""

import json
import os
import pathlib
import unittest

import yaml

from deployed import COMPOSE_FILES, DEPLOY, KUSTOMIZATIONS, listed, prometheus_rule

DIRECTORY = os.environ.get("PERCEPTROND_SCHEMAS")


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


@unittest.skipUnless(DIRECTORY, "PERCEPTROND_SCHEMAS names no directory with the published schemas")
class SchemasTest(unittest.TestCase):
    def obeys(self, document, schema, what):
        import jsonschema

        found = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in jsonschema.Draft7Validator(schema).iter_errors(document)]
        self.assertEqual(found, [], what)

    def test_manifests(self):
        kubernetes = strict(json.loads(pathlib.Path(DIRECTORY, "kubernetes.json").read_text()))["definitions"]
        for manifest in [prometheus_rule(), *(one for directory in KUSTOMIZATIONS for one in listed(directory))]:
            kind = manifest["kind"]
            group, _, version = manifest["apiVersion"].rpartition("/")
            own = pathlib.Path(DIRECTORY, f"{kind.lower()}s.yaml")
            if own.exists():
                (schema,) = [one["schema"]["openAPIV3Schema"] for one in yaml.safe_load(own.read_text())["spec"]["versions"] if one["name"] == version]
                # The API server knows it, and the definition leaves it open.
                schema["properties"]["metadata"] = {"type": "object", "additionalProperties": True}
                self.obeys(manifest, strict(schema), kind)
            else:
                wanted = {"group": group, "version": version, "kind": kind}
                (name,) = [name for name, one in kubernetes.items() if wanted in one.get("x-kubernetes-group-version-kind", [])]
                self.obeys(manifest, {"$ref": f"#/definitions/{name}", "definitions": kubernetes}, kind)

    def test_compose_files(self):
        schema = json.loads(pathlib.Path(DIRECTORY, "compose.json").read_text())
        for path in COMPOSE_FILES:
            self.obeys(yaml.safe_load((DEPLOY / path).read_text()), schema, path)


if __name__ == "__main__":
    unittest.main()
