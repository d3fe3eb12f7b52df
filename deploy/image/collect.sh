#!/bin/sh
# Lays out the root of an image that holds the given programs and what they load, on the Debian that they were built on.
#   sh collect.sh PROGRAMS ROOT
# PROGRAMS is a directory. The root gets, besides programs and libraries: the packages that the libraries are of, with their
# licences, where scanners look for them (as in distroless images), and as a bill of materials in usr/share/sbom; a user; a
# directory for the data, that user's own.
set -eu

programs=$1
root=$2
user=65532

mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/usr/share/sbom" "$root/etc" "$root/tmp" "$root/var/lib/dpkg/status.d" "$root/var/lib/perceptrond"
# As Debian has them.
for link in bin lib lib64 sbin; do
  if [ -L "/$link" ]; then ln -s "usr/$link" "$root/$link"; fi
done

install -s -t "$root/usr/bin" "$programs"/*

# The loader's own word for what is loaded: "name => path (address)", or "path (address)" for the loader itself.
ldd "$programs"/* >"$root.libraries"
if grep 'not found' "$root.libraries" >&2; then exit 1; fi
libraries=$(awk '$2 == "=>" { print $3 } $1 ~ /^\// && $2 ~ /^\(/ { print $1 }' "$root.libraries" | sort -u)
: >"$root.parts"
for library in $libraries; do
  # Under /usr, where the root's links lead too.
  case $library in
    /usr/*) place=$library ;;
    *) place=/usr$library ;;
  esac
  mkdir -p "$root$(dirname "$place")"
  cp -L "$library" "$root$place"
  real=$(readlink -f "$library")
  # Files that came before /lib was a link into /usr are known by their old names.
  owner=$(dpkg -S "$real" 2>/dev/null || dpkg -S "${real#/usr}")
  printf '%s dynamic\n' "${owner%%:*}" >>"$root.parts"
done

# And those of which the programs have a part within them: archives, headers that are whole libraries, and the page's script;
# where the programs were built with them.
for library in librocksdb.a libClp.a libCoinUtils.a liblapack.a libblas.a libgfortran.a libquadmath.a; do
  cc -print-file-name=$library 2>/dev/null || true
done >"$root.within"
printf '/usr/include/%s\n' CLI/CLI.hpp spdlog/spdlog.h hwy/highway.h >>"$root.within"
printf '/usr/share/javascript/chart.js/chart.min.js\n' >>"$root.within"
while read -r file; do
  if [ -e "$file" ]; then
    owner=$(dpkg -S "$(readlink -f "$file")" 2>/dev/null || dpkg -S "$file")
    printf '%s static\n' "${owner%%:*}" >>"$root.parts"
  fi
done <"$root.within"

# Each once, whatever the number of its libraries.
cut -d ' ' -f 1 "$root.parts" | sort -u | while read -r package; do
  dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
  mkdir -p "$root/usr/share/doc/$package"
  cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/"
done
sh "$(dirname "$0")/sbom.sh" "$root" "$root.parts" "$("$programs/perceptrond" --version | cut -d ' ' -f 2)" \
  >"$root/usr/share/sbom/perceptrond.spdx.json"

printf 'root:x:0:0:root:/:/usr/sbin/nologin\nperceptrond:x:%d:%d:perceptrond:/var/lib/perceptrond:/usr/sbin/nologin\n' $user $user >"$root/etc/passwd"
printf 'root:x:0:\nperceptrond:x:%d:\n' $user >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
cp /etc/os-release "$root/etc/"
chmod 1777 "$root/tmp"
chown $user:$user "$root/var/lib/perceptrond"
chmod 0750 "$root/var/lib/perceptrond"
du -sh "$root"
