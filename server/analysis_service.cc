#include "server/analysis_service.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/model/error.h"
#include "core/model/views.h"
#include "server/analysis_convert.h"
#include "server/analyze_reactor.h"
#include "server/model_name.h"
#include "server/page_token.h"
#include "server/rpc/router.h"
#include "server/rpc/unary.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr int kDefaultPage = 1000;
constexpr int kLargestPage = 10'000;
// A page ends when its examples have so many features: a message of some 10 MB, names apart.
constexpr size_t kPageFeatures = 1 << 20;

// The last example listed: a revision, or a hash of the sample, which comes behind all revisions.
struct Place {
  bool in_sample = false;
  uint64_t number = 0;
};

// A model that was deleted and created anew has another list.
std::string ListOf(const Model& model) {
  return absl::StrCat("ListRetainedExamples of ", model.uid());
}

std::string Token(const Model& model, const Place& place) {
  return MakePageToken(ListOf(model), absl::StrCat(place.in_sample ? "s" : "u", place.number));
}

absl::StatusOr<Place> ReadToken(const Model& model, const std::string& token) {
  const absl::StatusOr<std::string> text = ReadPageToken(ListOf(model), token);
  if (!text.ok()) return text.status();
  Place place;
  if (text->empty()) return place;
  place.in_sample = text->front() == 's';
  // It is one of Token's.
  (void)absl::SimpleAtoi(text->substr(1), &place.number);
  return place;
}

// Some examples from behind a place on.
class Page {
 public:
  explicit Page(size_t limit) : limit_(limit) {}

  // False: the page is full.
  bool Add(const StoredUpdate& example, const Place& place) {
    if (examples_.size() == limit_ || features_ >= kPageFeatures) return false;
    features_ += example.row->values.size();
    examples_.push_back(example);
    last_ = place;
    return true;
  }
  // Says whether that was all.
  bool Fill(const StoredExamplesCopy& retained, const Place& after) {
    for (const StoredUpdate& update : retained.updates) {
      if (after.in_sample || update.revision <= after.number) continue;
      if (!Add(update, {false, update.revision})) return false;
    }
    for (const auto& [hash, row] : retained.sample) {
      if (after.in_sample && hash <= after.number) continue;
      if (!Add({.row = row}, {true, hash})) return false;
    }
    return true;
  }
  const std::vector<StoredUpdate>& examples() const { return examples_; }
  const Place& last() const { return last_; }

 private:
  const size_t limit_;
  size_t features_ = 0;
  std::vector<StoredUpdate> examples_;
  Place last_;
};

absl::Status List(Store& store, const v1::ListRetainedExamplesRequest& request,
                  v1::ListRetainedExamplesResponse& response) {
  if (absl::Status status = CheckModelName(request.name(), "name"); !status.ok()) return status;
  if (request.page_size() < 0) return InvalidField("INVALID_FIELD", "page_size", "is below 0");
  absl::StatusOr<std::shared_ptr<Model>> model = store.Acquire(request.name());
  if (!model.ok()) return model.status();
  const absl::StatusOr<Place> after = ReadToken(**model, request.page_token());
  if (!after.ok()) return after.status();
  const StoredExamplesCopy retained = CopyStoredExamples(**model).examples;
  Page page(request.page_size() == 0 ? kDefaultPage : std::min(request.page_size(), kLargestPage));
  const bool all = page.Fill(retained, *after);
  for (v1::RetainedExample& example : ToProto(**model, page.examples()))
    *response.add_examples() = std::move(example);
  if (!all) response.set_next_page_token(Token(**model, page.last()));
  response.set_total(retained.updates.size() + retained.sample.size());
  response.set_complete(retained.complete);
  return absl::OkStatus();
}

}  // namespace

void AddAnalysisService(Router& router, const Backend& backend, AnalysisQueue& queue) {
  const UnaryMethods unary(backend);
  router.AddService(
      "perceptron.v1.AnalysisService",
      {{"Analyze", [backend, &queue](Call& call) { AnalyzeReactor::Start(call, backend, queue); }},
       {"ListRetainedExamples", unary(List)}});
}

}  // namespace perceptrond
