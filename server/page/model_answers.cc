#include "server/page/model_answers.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/model/views.h"
#include "core/report/format.h"
#include "core/report/learner_text.h"
#include "server/config/build_info.h"
#include "server/rpc/message.h"
#include "server/sessions/convert.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;
namespace page = ::perceptron::page::v1;

constexpr uint64_t kMaxModelPageSize = 100;
constexpr uint64_t kMaxPoints = 64;
constexpr uint64_t kMaxFeatures = 100;
// Searching them takes about 0.3 s of a processor.
constexpr size_t kMaxWeights = size_t{1} << 26;
// More lists than a person reads.
constexpr size_t kMaxClasses = 1000;

// Keeps `points` of the points, spread evenly, including the first and the last.
void Thin(size_t points, LearningCurve& curves) {
  std::vector<LearningCurvePoint>& all = curves.points;
  if (all.size() <= points) return;
  std::vector<LearningCurvePoint> kept;
  for (size_t i = 0; i + 1 < points; ++i) kept.push_back(all[i * (all.size() - 1) / (points - 1)]);
  if (points > 0) kept.push_back(all.back());
  all = std::move(kept);
}

// Removes the points up to `revision`. The last point stays: it may have the same revision and more
// examples.
void DropUpTo(uint64_t revision, LearningCurve& curves) {
  std::vector<LearningCurvePoint>& all = curves.points;
  const auto last = std::prev(all.end());
  all.erase(all.begin(),
            std::find_if(all.begin(), last, [revision](const LearningCurvePoint& point) {
              return static_cast<uint64_t>(point.revision()) > revision;
            }));
}

bool SeesAll(const ReadablePrefixes& readable) {
  return IsReadable(std::string(kModelCollection), readable);
}

void FigureToProto(const FigureView& figure, page::ModelDetail::Figure& proto) {
  proto.set_name(figure.name);
  proto.set_title(figure.title);
  proto.set_help(figure.help);
  proto.set_value(figure.value);
  proto.set_headline(figure.headline);
}

}  // namespace

void ModelAnswers::Describe(const ReadablePrefixes& readable, page::ServerStatus& server) {
  const absl::Time now = absl::Now();
  server.mutable_time()->set_seconds(absl::ToUnixSeconds(now));
  server.mutable_time()->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(now - absl::FromUnixSeconds(absl::ToUnixSeconds(now)))));
  server.set_version(GetBuildInfo().version);
  server.set_revision(GetBuildInfo().revision);
  const Store::Stats stats = store_.stats();
  if (SeesAll(readable)) {
    server.set_models(store_.catalogue().Count().value_or(0));
    server.set_models_in_memory(stats.models_in_memory);
    server.set_memory_bytes(stats.memory_bytes);
  }
  server.set_memory_budget_bytes(store_.memory().limit());
  server.set_draining(draining_());
}

absl::Status ModelAnswers::AddEntry(const ModelRow& row, uint64_t points, bool& journal_is_away,
                                    page::ModelList& answer) {
  const bool in_memory = ModelHandle::FindInMemory(store_, row.name) != nullptr;
  const absl::StatusOr<ModelSummary> summary =
      journal_is_away && !in_memory ? absl::UnavailableError("") : store_.GetSummary(row.name);
  // Deleted since the index was read.
  if (absl::IsNotFound(summary.status())) return absl::OkStatus();
  // That of a fleet may be away for long: it is asked once.
  const bool is_away = store_.fleet() != nullptr && absl::IsUnavailable(summary.status());
  journal_is_away |= is_away;
  if (is_away || absl::IsDataLoss(summary.status())) {
    answer.add_unreachable(row.name);
    return absl::OkStatus();
  }
  if (!summary.ok()) return summary.status();
  page::ModelList::Entry& entry = *answer.add_models();
  *entry.mutable_model() = ToProto(*summary);
  entry.set_in_memory(summary->in_memory);
  entry.set_convergence(StateName(entry.model().report().state()));
  if (row.rate.has_value()) entry.set_examples_per_second(*row.rate);
  const std::shared_ptr<Model> model = store_.GetIfLoaded(row.name);
  if (points == 0 || model == nullptr || model->uid() != summary->settings.uid())
    return absl::OkStatus();
  LearningCurve curves = MakeLearningCurve(*model, ComponentAccess::kOnlyInMemory);
  Thin(std::min(points, kMaxPoints), curves);
  ToProto(curves, *entry.mutable_model());
  return absl::OkStatus();
}

absl::StatusOr<page::ModelList> ModelAnswers::List(const ModelListQuery& query) {
  const uint64_t limit = std::clamp<uint64_t>(query.page_size, 1, kMaxModelPageSize);
  // No page lies beyond the models that the index has.
  const uint64_t page = std::clamp<uint64_t>(query.page, 1, ModelIndex::kMaxModels);
  const absl::StatusOr<ModelIndex::Found> found =
      index_.Find(query.filter, (page - 1) * limit, limit);
  if (!found.ok()) return found.status();
  page::ModelList answer;
  bool journal_is_away = false;
  for (const ModelRow& row : found->rows) {
    absl::Status status = AddEntry(row, query.points, journal_is_away, answer);
    if (!status.ok()) return status;
  }
  answer.set_matches(found->matches);
  Describe(query.filter.readable, *answer.mutable_server());
  return answer;
}

absl::Status ModelAnswers::Exists(const std::string& id, const ReadablePrefixes& readable) {
  const std::string name = absl::StrCat(kModelCollection, id);
  if (absl::Status status = CheckModelName(name, "model"); !status.ok()) return status;
  if (!IsReadable(name, readable)) return ModelNotFound(name);
  return store_.GetSummary(name).status();
}

absl::Status ModelAnswers::Load(const std::string& name) {
  if (store_.GetIfLoaded(name) != nullptr) return absl::OkStatus();
  MutexLock turn(&load_turn_);
  return store_.Acquire(name).status();
}

absl::StatusOr<page::ModelDetail> ModelAnswers::Detail(const ModelDetailQuery& query) {
  const std::string name = absl::StrCat(kModelCollection, query.id);
  if (absl::Status status = CheckModelName(name, "model"); !status.ok()) return status;
  if (!IsReadable(name, query.readable)) return ModelNotFound(name);
  if (query.load) {
    if (absl::Status status = Load(name); !status.ok()) return status;
  }
  const absl::StatusOr<ModelSummary> summary = store_.GetSummary(name);
  if (!summary.ok()) return summary.status();
  page::ModelDetail answer;
  v1::Model& proto = *answer.mutable_model();
  proto = ToProto(*summary);
  answer.set_in_memory(summary->in_memory);
  const std::shared_ptr<Model> model = store_.GetIfLoaded(name);
  if (model != nullptr && model->uid() == proto.uid()) {
    for (const std::string& label : LabelNames(*model)) proto.add_label_names(label);
    LearningCurve curves = MakeLearningCurve(*model, ComponentAccess::kOnlyInMemory);
    DropUpTo(query.after_revision, curves);
    ToProto(curves, proto);
    if (query.features > 0) {
      DescribeWeights(*model, std::min(query.features, kMaxFeatures),
                      *answer.mutable_top_features());
    }
  } else if (auto header = store_.catalogue().Find(name); header.ok()) {
    proto.mutable_label_names()->Swap(header->mutable_model()->mutable_label_names());
  }
  answer.set_convergence(StateName(proto.report().state()));
  for (const std::string& line : FormatReport(proto.report())) answer.add_report(line);
  answer.set_learner(FormatLearner(proto.learner()));
  for (const FigureView& figure : ViewFigures(proto.report()))
    FigureToProto(figure, *answer.add_figures());
  Describe(query.readable, *answer.mutable_server());
  return answer;
}

void ModelAnswers::DescribeWeights(const Model& model, size_t limit, page::TopFeatures& features) {
  if (CountWeights(model) > kMaxWeights) {
    features.set_absent("the model has more weights than this page searches");
    return;
  }
  MutexLock turn(&weights_turn_);
  const TopWeights top = FindTopWeights(model, limit);
  if (top.lists.empty()) {
    features.set_absent(model.settings().is_multiclass()
                            ? "the model has no class yet"
                            : "the learner predicts by votes or by a kernel, not by weights");
    return;
  }
  const std::vector<std::string> names = LabelNames(model);
  features.set_first_revision(static_cast<int64_t>(top.lists.front().revision));
  features.set_last_revision(static_cast<int64_t>(top.last_revision));
  for (size_t number = 0; number < std::min(top.lists.size(), kMaxClasses); ++number) {
    const WeightList& weights = top.lists[number];
    page::TopFeatures::List& list = *features.add_lists();
    list.set_class_number(static_cast<uint32_t>(number));
    if (model.settings().is_multiclass() && number < names.size())
      list.set_class_name(names[number]);
    ToProto(weights, *list.mutable_weights());
  }
}

}  // namespace perceptrond
