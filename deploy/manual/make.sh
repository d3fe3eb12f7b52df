#!/bin/sh
# Makes the manual pages of both programs, by help2man from their --help, and the settings file of the service.
#   sh make.sh PERCEPTROND PERCEPTRONCTL VERSION SECONDS OUT
# SECONDS is when the version was released, since 1970.
set -eu

perceptrond=$1 perceptronctl=$2 version=$3 out=$5
export SOURCE_DATE_EPOCH="$4" LC_ALL=C
sources=$(dirname "$0")
# The caller's settings are no defaults.
for name in $(env | sed -n 's/^\(PERCEPTRON[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
rm -rf "$out"
mkdir -p "$out/man" "$out/default"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The form that help2man expects: descriptions stand far to the right, and a line in asterisks names a section. The types of
# values, as CLI11 names them, become those of readers.
for_help2man() {
  sed -E -e 's/^      ([^ ])/                      \1/; s/^  -(.),--/  -\1, --/; s/^(  --header),(--no-header)\S*/\1, \2 /' \
    -e '/^  ([A-Z]+|-.*) /{s/ (FLOAT|U?INT):(FLOAT|U?INT) in \[(\S+) - ([^]]+)\](=\S+)?/ N\5 (\3 to \4)/' \
    -e 's/ (TEXT|U?INT):\{/ {/; s/ (FLOAT|U?INT)(:NONNEGATIVE)?/ N/; s/ TEXT( \.\.\.)? REQUIRED/\1/; s/\(Env:/(/}' |
    awk 'sub(/^Positionals:$/, "*Arguments*\n") || sub(/^Subcommands:$/, "*Commands*\n") || /^(Options|Examples):$/ { print; listed = 1; next }
         sub(/^Exit codes: /, "*Exit status*\n\n") { print; listed = 0; next }
         listed && /^[^ ]/ { print "*Notes*\n"; listed = 0 }
         sub(/^  perceptron/, "  $ perceptron") { gsub(/   +/, "  # ") }
         { print }'
}

# page NAME SECTIONS PROGRAM [SUBCOMMAND]
page() {
  name=$1 sections=$2
  shift 2
  "$@" --help >"$work/help"
  about=$(sed 's/^perceptrond: //; s/\.$//; q' "$work/help")
  for_help2man <"$work/help" >"$work/text"
  cat >"$work/$name" <<END
#!/bin/sh
if [ "\$1" = --version ]; then echo "$name $version"; else cat "$work/text"; fi
END
  chmod +x "$work/$name"
  help2man --no-info --name="$about" --source="perceptrond $version" --include="$sources/$sections.h2m" \
    --output="$out/man/$name.1" "$work/$name"
  sed -i 's/^\.SH EXAMPLES$/&\n.nf/' "$out/man/$name.1"
}

page perceptrond perceptrond "$perceptrond"
page perceptronctl perceptronctl "$perceptronctl"
for command in $("$perceptronctl" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  page "perceptronctl-$command" command "$perceptronctl" "$command"
done
gzip -9nk "$out"/man/*.1

# /etc/default/perceptrond: each flag but --data-dir, which the unit sets, as a variable with its default, commented out.
"$perceptrond" --print-config >"$work/config"
{
  echo "# Settings of the service perceptrond: variables, each standing for a flag; perceptrond(1) has them too."
  echo "# After a change: systemctl restart perceptrond"
  echo "# The models are in /var/lib/perceptrond. TLS files: see docs/secure.md."
  "$perceptrond" --help | awk '
    FILENAME != "-" { flag = $1; sub(/^[^=]*= /, ""); gsub(/[]["\047 ]/, ""); defaults[flag] = $0; next }
    /^  -/ { flag = substr($1, 3); listed = flag in defaults && flag != "data-dir"; if (listed) print ""; next }
    listed && sub(/^      /, "# ") { print; next }
    listed { variable = toupper(flag); gsub(/-/, "_", variable); print "#PERCEPTROND_" variable "=" defaults[flag]; listed = 0 }
  ' "$work/config" -
} >"$out/default/perceptrond"
