#!/bin/sh
# Prints the recording and alerting rules as a PrometheusRule, for the Prometheus operator:
#   sh deploy/kubernetes/prometheusrule.sh | kubectl apply -f -
set -eu

cat <<'END'
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: perceptrond
  labels:
    app.kubernetes.io/name: perceptrond
spec:
  groups:
END
for rules in "$(dirname "$0")"/../prometheus/rules/*.yml; do
  sed -e '/^#/d' -e '/^groups:$/d' -e 's/^\(.\)/  \1/' "$rules"
done
