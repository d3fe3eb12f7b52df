#!/bin/sh
# Includes run one way, between layers and between the folders of server/; each library hides in its place. The tables below
# say how.
#   sh include_direction_test.sh [ROOT]
set -eu

root=${1:-$(dirname "$0")/../..}
cd "$root"

# shellcheck disable=SC2046  # no name in the tree holds a space
awk '
function layer_of(path) {
  if (path ~ /^core\/[a-z]+\//) { split(path, part, "/"); return part[2] }
  if (path ~ /^server\//) return "server"
  if (path ~ /^client\//) return "client"
  if (path ~ /^perceptron\/storage\/.*\.pb\.h$/) return "records"
  if (path ~ /^perceptron\/page\/.*\.pb\.h$/) return "page"
  if (path ~ /^perceptron\/access\/.*\.pb\.h$/) return "access"
  if (path ~ /^(perceptron|google)\/.*\.grpc\.pb\.h$/) return "services"
  if (path ~ /^(perceptron|google\/rpc)\/.*\.pb\.h$/) return "messages"
  if (path ~ /^inference\/.*\.pb\.h$/) return "inference"
  if (path ~ /^grpc\/(health|reflection)\/.*\.pb\.h$/) return "standard"
  return ""
}
# The place of a file of server/ among its folders: its own files come after all of them.
function place_of(path) {
  if (path !~ /^server\//) return 0
  split(path, part, "/")
  return part[3] == "" ? folders + 1 : place[part[2]]
}
function wrong(why) {
  printf "%s:%d: includes %s: %s\n", FILENAME, FNR, included, why
  violations++
}
BEGIN {
  # A layer includes these, besides itself, the standard library and Abseil.
  allowed["file"] = ""
  allowed["sync"] = ""
  allowed["vector"] = "sync"
  allowed["features"] = "sync vector"
  allowed["learner"] = "sync vector features"
  allowed["convergence"] = "sync vector learner records messages"
  allowed["journal"] = "file sync records"
  allowed["error"] = "sync vector messages"
  allowed["memory"] = "error sync"
  allowed["settings"] = "error vector features learner messages records"
  allowed["ledger"] = "error settings sync vector features learner convergence journal records messages"
  allowed["model"] = allowed["ledger"] " memory ledger"
  allowed["fleet"] = allowed["model"] " model"
  allowed["store"] = allowed["fleet"] " fleet"
  allowed["report"] = "messages"
  allowed["server"] = allowed["store"] " file store report page access services inference standard"
  allowed["client"] = "file sync vector report messages services"

  # The folders of server/ in order: each may include those before it.
  folders = split("config rpc access sessions fleet page http metrics services maintenance", order, " ")
  for (i = 1; i <= folders; i++) place[order[i]] = i
  # Includes against that order which were there when it was first checked. The list only shrinks.
  against["server/access/admission.cc server/metrics/rpc_metrics.h"]
  against["server/access/http_access.h server/page/http.h"]
  against["server/config/command_line.cc server/access/token.h"]
  against["server/maintenance/journals.cc server/open_store.h"]
  against["server/rpc/call.cc server/access/admission.h"]
  against["server/rpc/unary.h server/access/admission.h"]

  # Where a library may be seen.
  home["grpc/"] = home["grpcpp/"] = "^(server|client)/"
  home["prometheus/"] = "^server/metrics/metrics[.]cc$"
  home["microhttpd"] = "^server/http/http_server[.]cc$"
  home["rocksdb/"] = "^core/journal/rocksdb/"
  home["zlib"] = "^(core/journal/rocksdb/watermark|client/format/decompress)[.]cc$"
  home["zstd"] = "^client/format/decompress[.]cc$"
  home["unicode/"] = "^core/features/words[.]cc$"
  home["xxhash"] = "^core/(features/names|journal/table_entries)[.]cc$"
  home["libpq"] = "^core/journal/postgres/(connection[.]h|uri[.]cc)$"
  home["Clp"] = home["Coin"] = "^core/convergence/analysis/certificate[.]cc$"
  home["gmp"] = "^core/convergence/analysis/integer_matrix[.]h$"
  home["openssl/"] = "^server/(config/tls_files|access/token)[.]cc$"
  home["spdlog/"] = home["fmt/"] = "^server/config/logging[.]cc$"
  home["CLI/"] = "^(server/config/command_line[.](cc|h)|server/maintenance/commands[.]cc|client/ctl/.*)$"
}
FNR == 1 {
  files++
  layer = layer_of(FILENAME)
  if (!(layer in allowed)) {
    printf "%s: lies in no layer; see docs/architecture.md, and name it in tests/style/include_direction_test.sh\n", FILENAME
    violations++
  }
  if (layer == "server" && !place_of(FILENAME)) {
    printf "%s: lies in a folder of server/ without a place in the order; name it in tests/style/include_direction_test.sh\n", FILENAME
    violations++
  }
}
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  included = $0
  sub(/^[ \t]*#[ \t]*include[ \t]*/, "", included)
  quoted = substr(included, 1, 1) == "\""
  path = substr(included, 2)
  sub(/[">].*/, "", path)
  for (library in home)
    if (index(path, library) == 1 && FILENAME !~ home[library])
      wrong("this library is used in " home[library] " only")
  target = layer_of(path)
  if (target == "") {
    if (quoted && path !~ /^absl\//) wrong("an include of the project names its layer, from the root")
    next
  }
  if (!quoted) wrong("an include of the project stands in quotes")
  if (target != layer && index(" " allowed[layer] " ", " " target " ") == 0)
    wrong(layer " may not depend on " target)
  if (layer == "server" && path ~ /^server\// && place_of(path) > place_of(FILENAME)) {
    pair = FILENAME " " path
    if (pair in against) seen[pair]
    else wrong("it stands later in the order of the folders of server/")
  }
}
END {
  if (files == 0) { print "no source files found"; exit 1 }
  for (pair in against)
    if (!(pair in seen)) {
      printf "tests/style/include_direction_test.sh: \"%s\" is no longer included against the order: remove the line\n", pair
      violations++
    }
  if (violations) { printf "%d violations in %d files\n", violations, files; exit 1 }
  printf "%d files keep to the include direction\n", files
}
' $(find core server client -name '*.cc' -o -name '*.h' -o -name '*.cc.in' | sort)
