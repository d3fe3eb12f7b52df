// Any bytes as a request of the status page: answered with a status that the page has, JSON that is
// JSON, and headers of one line each, never a crash. And as page tokens: one is read only if it was
// made, and then it is read as what it was made of. The first byte chooses which; a request is the
// method, the path, the headers and the query's names and values, a line each.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "server/page/host_check.h"
#include "server/page/status_page.h"
#include "server/rpc/message.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using perceptrond::HttpAnswer;
using perceptrond::HttpRequest;
using perceptrond::StatusPage;
using perceptrond::Store;
using perceptrond::testing::Check;
namespace v1 = ::perceptron::v1;

// One for all inputs: a page changes nothing.
StatusPage& Page() {
  static Store store(std::make_unique<perceptrond::MemoryJournal>(), Store::Options());
  static StatusPage* page = nullptr;
  if (page != nullptr) return *page;
  for (const char* name : {"models/m", "models/spam.2"}) {
    v1::Model settings;
    settings.set_name(name);
    settings.set_description("U+202E: \u202e");
    settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
    Check(store.Create(settings, "", false).ok());
  }
  page = new StatusPage(store, [] { return false; });
  return *page;
}

void CheckAnswer(const HttpAnswer& answer) {
  constexpr int kStatuses[] = {200, 304, 400, 403, 404, 405, 503};
  Check(std::find(std::begin(kStatuses), std::end(kStatuses), answer.status) !=
        std::end(kStatuses));
  bool json = false;
  bool packed = false;
  for (const auto& [name, value] : answer.headers) {
    Check(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    json |= name == "Content-Type" && absl::StartsWith(value, "application/json");
    packed |= name == "Content-Encoding";
  }
  google::protobuf::Value value;
  Check(!json || packed || google::protobuf::util::JsonStringToMessage(answer.body, &value).ok());
}

void Ask(absl::string_view text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const auto line = [&](size_t i) { return i < lines.size() ? lines[i] : std::string(); };
  HttpRequest request;
  request.method = line(0);
  request.path = line(1);
  request.host = line(2);
  request.accept_encoding = line(3);
  request.if_none_match = line(4);
  for (size_t i = 5; i + 1 < lines.size(); i += 2)
    request.query.emplace_back(lines[i], line(i + 1));
  static const auto* const handler = new perceptrond::HttpHandler(perceptrond::WithHostCheck(
      {"page.example"}, [](const HttpRequest& asked) { return Page().Answer(asked); }));
  CheckAnswer((*handler)(request));
}

// A token is read as a name of the collection, as so many numbers, or not at all.
void ReadToken(const std::string& token) {
  const auto is_refused = [](const absl::Status& status) {
    return absl::IsInvalidArgument(status) && !status.message().empty();
  };
  const auto name = perceptrond::ReadPageName("list", token, perceptrond::kModelCollection);
  Check(name.ok() ? token.empty() || (perceptrond::MakePageToken("list", *name) == token &&
                                      perceptrond::CheckModelName(*name, "name").ok())
                  : is_refused(name.status()));
  for (const size_t count : {1, 2, 3}) {
    const auto numbers = perceptrond::ReadPageNumbers("list", token, count);
    Check(numbers.ok() ? numbers->size() == (token.empty() ? 0 : count)
                       : is_refused(numbers.status()));
  }
}

void CheckToken(std::string_view bytes) {
  const std::string text(bytes);
  ReadToken(text);
  // Of any content, with the right checksum.
  const std::string made = perceptrond::MakePageToken("list", text);
  ReadToken(made);
  Check(!perceptrond::ReadPageName("other list", made, perceptrond::kModelCollection).ok());
  Check(!perceptrond::ReadPageNumbers("other list", made, 1).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 4 == 0) {
    CheckToken(text);
  } else {
    Ask({text.data(), text.size()});
  }
  return 0;
}
