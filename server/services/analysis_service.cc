#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/model/views.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/services/services.h"
#include "server/sessions/analyze_reactor.h"
#include "server/sessions/convert.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr size_t kDefaultExamplePageSize = 1000;
constexpr size_t kMaxExamplePageSize = 10'000;
// A page ends when its examples have this many features: about 10 MB, without names.
constexpr size_t kMaxPageFeatures = 1 << 20;

// What looking at an example takes, in multiply-adds.
constexpr size_t kLookWork = 10;

// Where a page ended. Updates are listed first, by their revision, then the sample, by its hashes.
struct Position {
  bool in_sample = false;
  uint64_t number = 0;
};

// A model that was deleted and created again has another list.
std::string ListOf(const Model& model) {
  return absl::StrCat("ListStoredExamples of ", model.uid());
}

std::string Token(const Model& model, const Position& position) {
  return MakePageToken(ListOf(model), {position.in_sample ? 1U : 0U, position.number});
}

absl::StatusOr<Position> ReadToken(const Model& model, const std::string& token) {
  const absl::StatusOr<std::vector<uint64_t>> numbers = ReadPageNumbers(ListOf(model), token, 2);
  if (!numbers.ok()) return numbers.status();
  if (numbers->empty()) return Position();
  if (numbers->at(0) > 1) return BadPageToken(token);
  return Position{numbers->at(0) == 1, numbers->at(1)};
}

// The examples after a position, as many as fit a page.
class Page {
 public:
  explicit Page(size_t limit) : limit_(limit) {}

  // Returns false, and adds nothing, if the page is full.
  bool Add(const StoredUpdate& example, const Position& position) {
    if (examples_.size() == limit_ || features_ >= kMaxPageFeatures) return false;
    features_ += example.row->values.size();
    examples_.push_back(example);
    last_ = position;
    return true;
  }
  // Adds the examples after `after`; returns whether these are all. Asks KeepGoing.
  bool Fill(const StoredExamplesCopy& stored, const Position& after) {
    for (const StoredUpdate& update : stored.updates) {
      if (!KeepGoing(kLookWork)) return false;
      if (after.in_sample || update.revision <= after.number) continue;
      if (!Add(update, {false, update.revision})) return false;
    }
    for (const auto& [hash, row] : stored.sample) {
      if (!KeepGoing(kLookWork)) return false;
      if (after.in_sample && hash <= after.number) continue;
      if (!Add({.row = row}, {true, hash})) return false;
    }
    return true;
  }
  const std::vector<StoredUpdate>& examples() const { return examples_; }
  const Position& last() const { return last_; }

 private:
  const size_t limit_;
  size_t features_ = 0;
  std::vector<StoredUpdate> examples_;
  Position last_;
};

absl::Status ListStoredExamples(Store& store, const v1::ListStoredExamplesRequest& request,
                                v1::ListStoredExamplesResponse& response) {
  if (absl::Status status = CheckModelName(request.model(), "model"); !status.ok()) return status;
  const absl::StatusOr<size_t> page_size =
      ReadPageSize(request.page_size(), kDefaultExamplePageSize, kMaxExamplePageSize);
  if (!page_size.ok()) return page_size.status();
  absl::StatusOr<std::shared_ptr<Model>> model = store.Acquire(request.model());
  if (!model.ok()) return model.status();
  const absl::StatusOr<Position> after = ReadToken(**model, request.page_token());
  if (!after.ok()) return after.status();
  const StoredExamplesCopy stored = CopyStoredExamples(**model).examples;
  Page page(*page_size);
  const bool all = page.Fill(stored, *after);
  if (!KeepGoing()) return StoppedError();
  std::vector<v1::StoredExample> examples = ToProto(**model, page.examples());
  if (!KeepGoing()) return StoppedError();
  for (v1::StoredExample& example : examples) *response.add_examples() = std::move(example);
  if (!all) response.set_next_page_token(Token(**model, page.last()));
  response.set_total_size(stored.updates.size() + stored.sample.size());
  response.set_complete(stored.complete);
  return absl::OkStatus();
}

}  // namespace

void AddAnalysisService(Router& router, const Backend& backend, AnalysisQueue& queue) {
  const UnaryMethods unary(backend);
  router.AddService(
      "perceptron.v1.AnalysisService",
      {{"Analyze", [backend, &queue](Call& call) { AnalyzeReactor::Start(call, backend, queue); }},
       {"ListStoredExamples", unary(ListStoredExamples, IsLarge<v1::ListStoredExamplesRequest>)}});
}

}  // namespace perceptrond
