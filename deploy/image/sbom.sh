#!/bin/sh
# Prints the software bill of materials of an image's root, as SPDX 2.3 in JSON.
#   sh sbom.sh ROOT PARTS VERSION
# ROOT: as collect.sh lays it out, with each Debian package's entry in var/lib/dpkg/status.d. PARTS: a file with a line
# `PACKAGE dynamic|static` for each of them, how the programs have it. VERSION: of the programs.
# Set SOURCE_DATE_EPOCH to make the output the same each time.
set -eu

root=$1
parts=$2
version=$3
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
debian=$(sed -n 's/^VERSION_ID="\(.*\)"/\1/p' /etc/os-release)

# Fields of a package's entry, which have neither quotes nor backslashes.
field() { sed -n "s/^$2: //p" "$root/var/lib/dpkg/status.d/$1"; }

# An SPDX identifier has letters, digits, '.' and '-'.
id() { printf 'SPDXRef-Package-%s' "$1" | sed 's/+/-plus/g'; }
# A version or a name within a package URL.
url() { printf '%s' "$1" | sed 's/+/%2B/g; s/:/%3A/g; s/~/%7E/g'; }

packages=$(cut -d ' ' -f 1 "$parts" | sort -u)
digest=$(cat "$parts" "$root"/var/lib/dpkg/status.d/* "$root"/usr/bin/* | sha256sum | cut -c 1-32)

cat <<END
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "perceptrond-$version",
  "documentNamespace": "https://spdx.org/spdxdocs/perceptrond-$version-$digest",
  "creationInfo": {"created": "$created", "creators": ["Tool: deploy/image/sbom.sh"]},
  "packages": [
    {
      "SPDXID": "SPDXRef-perceptrond",
      "name": "perceptrond",
      "versionInfo": "$version",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "licenseConcluded": "Apache-2.0",
      "licenseDeclared": "Apache-2.0",
      "copyrightText": "NOASSERTION"
    }
END
for package in $packages; do
  architecture=$(field "$package" Architecture)
  version_of_package=$(field "$package" Version)
  cat <<END
    ,{
      "SPDXID": "$(id "$package")",
      "name": "$package",
      "versionInfo": "$version_of_package",
      "supplier": "Organization: Debian",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "licenseConcluded": "NOASSERTION",
      "licenseDeclared": "NOASSERTION",
      "licenseComments": "See /usr/share/doc/$package/copyright in the image.",
      "copyrightText": "NOASSERTION",
      "externalRefs": [{
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": "pkg:deb/debian/$(url "$package")@$(url "$version_of_package")?arch=$architecture&distro=debian-$debian"
      }]
    }
END
done
printf '  ],\n  "files": [\n'
separator=' '
for program in "$root"/usr/bin/*; do
  name=$(basename "$program")
  cat <<END
    $separator{
      "SPDXID": "SPDXRef-File-$name",
      "fileName": "./usr/bin/$name",
      "checksums": [
        {"algorithm": "SHA1", "checksumValue": "$(sha1sum "$program" | cut -d ' ' -f 1)"},
        {"algorithm": "SHA256", "checksumValue": "$(sha256sum "$program" | cut -d ' ' -f 1)"}
      ],
      "licenseConcluded": "Apache-2.0",
      "copyrightText": "NOASSERTION"
    }
END
  separator=','
done
printf '  ],\n  "relationships": [\n'
printf '    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-perceptrond"}\n'
for program in "$root"/usr/bin/*; do
  printf '    ,{"spdxElementId": "SPDXRef-perceptrond", "relationshipType": "CONTAINS", "relatedSpdxElement": "SPDXRef-File-%s"}\n' \
    "$(basename "$program")"
done
sort -u "$parts" | while read -r package how; do
  case $how in dynamic) link=DYNAMIC_LINK ;; static) link=STATIC_LINK ;; esac
  printf '    ,{"spdxElementId": "SPDXRef-perceptrond", "relationshipType": "%s", "relatedSpdxElement": "%s"}\n' \
    "$link" "$(id "$package")"
done
printf '  ]\n}\n'
