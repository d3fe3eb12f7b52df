// A server with an access file, and callers with and without tokens.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/integration/fixture.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {

// The principals admin, keeper, trainer, reader and scraper; the token of NAME is "NAME-token". Written before
// the server starts.
class AccessFile {
 public:
  AccessFile() { Write(Text()); }

  std::string path() const { return dir_.path() + "/access"; }
  std::string audit_log() const { return dir_.path() + "/audit"; }
  // Replaces the file in one step, as tools do that fear a half-written one.
  void Write(const std::string& text) const {
    std::ofstream(path() + ".new") << text;
    chmod((path() + ".new").c_str(), 0600);
    rename((path() + ".new").c_str(), path().c_str());
  }
  // The rules of all principals but one.
  static std::string Text(const std::string& without = "") {
    std::string text;
    const auto add = [&](const std::string& name, const std::string& rights) {
      if (name == without) return;
      absl::StrAppend(&text, "principal { name: '", name, "' token_sha256: '",
                      Digest(name + "-token"), "' ", rights, " }\n");
    };
    add("admin", "allow { role: ADMIN models: '' } right: HEALTH right: REFLECTION");
    add("keeper", "allow { role: ADMIN models: 'spam-' }");
    add("trainer", "allow { role: LEARN models: 'spam-' }");
    add("reader",
        "allow { role: READ models: 'spam-' } allow { role: READ models: 'x' } right: PAGE");
    add("scraper", "right: METRICS");
    return text;
  }
  static std::string Digest(const std::string& token) {
    const CommandResult sum = RunCommand("printf %s '" + token + "' | sha256sum | cut -d' ' -f1");
    return sum.out.substr(0, 64);
  }

 private:
  TempDir dir_;
};

class AccessTest : public AccessFile, public ServerTest {
 protected:
  // All calls are slow ones, whose lines name the principal.
  AccessTest()
      : ServerTest({"--access-file", AccessFile::path(), "--audit-log", audit_log(), "--slow-call",
                    "1us"}) {}

  // Adds the token that the principal of this name has; none for "".
  static void Authorize(grpc::ClientContext& context, const std::string& principal) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Hours(1)));
    if (!principal.empty()) context.AddMetadata("authorization", "Bearer " + principal + "-token");
  }
  // Calls a method as a principal.
  std::string As(const std::string& principal, const std::string& method,
                 const std::string& request, google::protobuf::Message* answer = nullptr) {
    return Call(method, request, answer, principal.empty() ? "" : principal + "-token");
  }
  std::string CreateAs(const std::string& principal, const std::string& id) {
    return As(principal, "ModelService/CreateModel",
              "model_id: '" + id + "' model { feature_space { dense { dimension: 2 } } }");
  }
  std::string GetAs(const std::string& principal, const std::string& id) {
    return As(principal, "ModelService/GetModel", "name: 'models/" + id + "'");
  }
  // Replaces the rules by others, and returns once the server uses them.
  void Replace(const std::string& text) {
    const auto reloads = [this] {
      const std::vector<std::string> lines = absl::StrSplit(ReadAll(audit_log()), '\n');
      return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return absl::StrContains(line, "reload access file") &&
               absl::StrContains(line, "\"outcome\":\"OK\"");
      });
    };
    const auto before = reloads();
    Write(text);
    server_.Signal(SIGHUP);
    WaitUntil([&] { return reloads() > before; });
  }
};

}  // namespace perceptrond::testing
