// A server with an access file, and callers with and without tokens.
#pragma once

#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {

// The principals admin, trainer, reader and scraper; the token of NAME is "NAME-token". Written before
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
  // `without` is left out.
  static std::string Text(const std::string& without = "") {
    std::string text;
    const auto add = [&](const std::string& name, const std::string& rights) {
      if (name == without) return;
      absl::StrAppend(&text, "principal { name: '", name, "' token_sha256: '",
                      Digest(name + "-token"), "' ", rights, " }\n");
    };
    add("admin", "allow { role: ADMIN models: '' } right: HEALTH right: REFLECTION");
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
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    if (!principal.empty()) context.AddMetadata("authorization", "Bearer " + principal + "-token");
  }
  grpc::Status CreateAs(const std::string& principal, const std::string& id,
                        const std::string& component = "") {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::CreateModelRequest request;
    request.set_model_id(id);
    v1::FeatureSpace& space = *request.mutable_model()->mutable_feature_space();
    if (component.empty()) {
      space.mutable_dense()->set_dimension(2);
    } else {
      space.mutable_composition()->add_inputs()->set_model("models/" + component);
    }
    v1::Model created;
    return models_->CreateModel(&context, request, &created);
  }
  grpc::Status GetAs(const std::string& principal, const std::string& id) {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::GetModelRequest request;
    request.set_name("models/" + id);
    v1::Model model;
    return models_->GetModel(&context, request, &model);
  }
  grpc::Status DeleteAs(const std::string& principal, const std::string& id) {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::DeleteModelRequest request;
    request.set_name("models/" + id);
    google::protobuf::Empty nothing;
    return models_->DeleteModel(&context, request, &nothing);
  }
  // The ids on all pages of this size, and how many pages there are.
  std::pair<std::vector<std::string>, int> ListAs(const std::string& principal, int page_size) {
    std::pair<std::vector<std::string>, int> listed;
    std::string token;
    do {
      grpc::ClientContext context;
      Authorize(context, principal);
      v1::ListModelsRequest request;
      request.set_page_size(page_size);
      request.set_page_token(token);
      v1::ListModelsResponse page;
      const grpc::Status status = models_->ListModels(&context, request, &page);
      EXPECT_TRUE(status.ok()) << status.error_message();
      for (const v1::Model& model : page.models()) listed.first.push_back(model.name().substr(7));
      ++listed.second;
      token = page.next_page_token();
    } while (!token.empty());
    return listed;
  }
};

}  // namespace perceptrond::testing
