#!/bin/sh
# Builds the Python package as its users do, with pip, and installs it into a fresh environment that has Debian's packages
# besides. Without a network. The wheel of the source distribution must have the same files.
#   sh install_package.sh ROOT ENVIRONMENT
set -eu

root=$1
environment=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/perceptrond-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1

# A copy: the build writes beside its sources.
mkdir "$work/client"
cp -R "$root/client/python" "$work/client/python"
cp -R "$root/proto" "$work/proto"
wheel_of() {
  /usr/bin/python3 -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$2" "$1"
  /usr/bin/python3 -m zipfile --list "$2"/perceptrond-*.whl | awk 'NR > 1 { print $1 }' | sort >"$2.files"
}
wheel_of "$work/client/python" "$work/wheel"
(cd "$work/client/python" && /usr/bin/python3 setup.py --quiet sdist --dist-dir "$work/source" 2>"$work/log") || { cat "$work/log" >&2; exit 1; }
wheel_of "$work/source"/perceptrond-*.tar.gz "$work/wheel-of-source"
diff "$work/wheel.files" "$work/wheel-of-source.files"
for file in perceptrond/py.typed perceptrond/sklearn.py perceptrond/v1/model_pb2.pyi perceptrond/google_rpc/status_pb2.py; do
  grep -qx "$file" "$work/wheel.files" || { echo "the wheel has no $file" >&2; exit 1; }
done

rm -rf "$environment"
/usr/bin/python3 -m venv --system-site-packages "$environment"
"$environment/bin/python" -m pip install --quiet --no-deps "$work"/wheel/perceptrond-*.whl
cd /
"$environment/bin/python" -I -c 'import perceptrond.sklearn, sys; assert perceptrond.__file__.startswith(sys.prefix), perceptrond.__file__'
