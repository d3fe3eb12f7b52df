#include "core/model/views.h"

#include <algorithm>
#include <cmath>

#include "core/error/error.h"
#include "core/sync/cancellation.h"
#include "core/vector/top.h"

namespace perceptrond {
namespace {

// Stored examples up to this size do not delay snapshots.
constexpr size_t kSmallStore = StoredExamplesSettings().update_bytes;

ReportContext ContextOf(const ModelReader& reader) {
  return {reader.state().learner->augmented_squared_norm(), reader.state().margin_of_interest,
          reader.components()};
}

// What reading a weight takes, in multiply-adds.
constexpr size_t kWeightWork = 4;

WeightList ToList(const ModelReader& reader, const Hypothesis& hypothesis) {
  WeightList list;
  const FloatArray& weights = hypothesis.weights;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (!KeepGoing(kWeightWork)) break;
    if (weights[i] == 0) continue;
    list.values.push_back(weights[i]);
    if (reader.core().has_names()) {
      list.names.emplace_back(reader.state().names.Name(i));
    } else {
      list.indices.push_back(i);
    }
  }
  list.bias = hypothesis.bias;
  list.revision = reader.revision();
  return list;
}

// Weights read under one lock, in some 0.2 ms.
constexpr size_t kWeightsAtOnce = size_t{1} << 15;

struct Weight {
  uint32_t index;
  double value;
};

struct IsLarger {
  bool operator()(const Weight& a, const Weight& b) const {
    return std::abs(a.value) > std::abs(b.value);
  }
};

// The score of no features.
double ConstantOf(const Learner& learner, size_t k, uint64_t age) {
  const Predictor& predictor = learner.predictor();
  std::vector<double> scores(predictor.scores());
  predictor.Score(Row{kNoIndices, nullptr, 0}, age, scores);
  return std::isfinite(scores[k]) ? scores[k] : 0;
}

// Of a learner that has feature weights.
WeightList FindLargest(const ModelCore& core, size_t k, size_t limit, uint64_t& last_revision) {
  Top<Weight, IsLarger> largest(limit);
  WeightList list;
  for (size_t begin = 0; KeepGoing(kWeightsAtOnce * kWeightWork); begin += kWeightsAtOnce) {
    const Guarded<ModelState>::Reader state(core.state);
    const Learner& learner = *state->learner;
    if (begin == 0) list.revision = state->revision;
    last_revision = state->revision;
    const uint64_t age = core.Age();
    const size_t end = std::min(begin + kWeightsAtOnce, learner.size());
    for (size_t i = begin; i < end; ++i) {
      const auto index = static_cast<uint32_t>(i);
      const double weight = learner.feature_weights()->FeatureWeight(k, index, age);
      if (weight != 0) largest.Offer({index, weight});
    }
    if (end < learner.size()) continue;
    for (const Weight& weight : largest.Take()) {
      list.values.push_back(static_cast<float>(weight.value));
      if (core.has_names()) {
        list.names.emplace_back(state->names.Name(weight.index));
      } else {
        list.indices.push_back(weight.index);
      }
    }
    list.bias = ConstantOf(learner, k, age);
    return list;
  }
  return list;
}

}  // namespace

ConvergenceReport MakeReport(const ModelReader& reader) {
  return reader.ledger().MakeReport(ContextOf(reader));
}

LearningCurve MakeLearningCurve(const ModelReader& reader) {
  return reader.ledger().MakeLearningCurve(ContextOf(reader));
}

std::vector<WeightList> ListWeights(const ModelReader& reader) {
  std::vector<WeightList> lists;
  const Learner& learner = *reader.state().learner;
  const FeatureWeights* const weights = learner.feature_weights();
  if (weights == nullptr) return lists;
  for (size_t k = 0; k < learner.predictor().scores() && KeepGoing(); ++k)
    lists.push_back(ToList(reader, weights->MakeHypothesis(k, reader.core().Age())));
  return lists;
}

namespace {

// Fills a page until it is full.
class WeightPageBuilder {
 public:
  WeightPageBuilder(const ModelReader& reader, WeightPosition from, size_t limit, size_t max_bytes)
      : reader_(reader), from_(from), limit_(limit), max_bytes_(max_bytes) {}

  // Adds vectors up to the `vectors`-th. size(v): the places in vector v; bias(v): its constant;
  // weight(v, i): the index and the weight of place i.
  template <typename Size, typename Bias, typename WeightAt>
  WeightPage Build(size_t vectors, const Size& size, const Bias& bias, const WeightAt& weight) {
    WeightPage page;
    page.vectors = vectors;
    for (; from_.vector < vectors; ++from_.vector, from_.index = 0) {
      WeightList& list = page.lists.emplace_back();
      list.revision = reader_.revision();
      list.bias = bias(from_.vector);
      bytes_ += sizeof(WeightList);
      for (const size_t end = size(from_.vector); from_.index < end; ++from_.index, ++looked_at_) {
        if (IsFull()) {
          page.next = from_;
          return page;
        }
        Append(weight(from_.vector, from_.index), list);
      }
    }
    return page;
  }

 private:
  // Indices that one page looks at.
  static constexpr size_t kIndicesAPage = size_t{1} << 20;

  bool IsFull() const {
    return count_ >= limit_ || bytes_ >= max_bytes_ || looked_at_ >= kIndicesAPage;
  }
  // Unless it is 0.
  void Append(const Weight& weight, WeightList& list) {
    const auto value = static_cast<float>(weight.value);
    if (value == 0) return;
    ++count_;
    list.values.push_back(value);
    if (!reader_.core().has_names()) {
      list.indices.push_back(weight.index);
      bytes_ += sizeof(float) + sizeof(uint32_t);
      return;
    }
    list.names.emplace_back(reader_.state().names.Name(weight.index));
    bytes_ += sizeof(float) + sizeof(std::string) + list.names.back().size();
  }

  const ModelReader& reader_;
  WeightPosition from_;
  const size_t limit_;
  const size_t max_bytes_;
  size_t count_ = 0;
  size_t bytes_ = 0;
  size_t looked_at_ = 0;
};

}  // namespace

WeightPage ListWeightPage(const ModelReader& reader, WeightPosition from, size_t limit,
                          size_t max_bytes) {
  const Learner& learner = *reader.state().learner;
  const FeatureWeights* const weights = learner.feature_weights();
  if (weights == nullptr) return {};
  const uint64_t age = reader.core().Age();
  return WeightPageBuilder(reader, from, limit, max_bytes)
      .Build(
          learner.predictor().scores(), [&](size_t /*k*/) { return learner.size(); },
          [&](size_t k) { return ConstantOf(learner, k, age); },
          [&](size_t k, size_t i) {
            const auto index = static_cast<uint32_t>(i);
            return Weight{index, weights->FeatureWeight(k, index, age)};
          });
}

WeightPage ListTermPage(const ModelReader& reader, WeightPosition from, size_t limit,
                        size_t max_bytes) {
  const std::vector<ScoreTerm> terms =
      reader.state().learner->predictor().Terms(reader.core().Age());
  WeightPage page = WeightPageBuilder(reader, from, limit, max_bytes)
                        .Build(
                            terms.size(), [&](size_t term) { return terms[term].vector.size; },
                            [&](size_t term) { return terms[term].bias; },
                            [&](size_t term, size_t i) {
                              const Row& vector = terms[term].vector;
                              return Weight{vector.index(i), vector.value(i)};
                            });
  for (size_t i = 0; i < page.lists.size(); ++i) page.terms.push_back(terms[from.vector + i]);
  return page;
}

std::vector<std::string> LabelNames(const ModelReader& reader) {
  if (!reader.settings().is_multiclass()) return reader.settings().label_names;
  const Dictionary& class_names = reader.state().class_names;
  std::vector<std::string> names;
  for (uint32_t number = 1; number <= class_names.size(); ++number)
    names.emplace_back(class_names.Name(number));
  return names;
}

std::vector<std::string> FeatureNames(const ModelReader& reader,
                                      std::span<const uint32_t> numbers) {
  std::vector<std::string> names;
  names.reserve(numbers.size());
  for (const uint32_t number : numbers) names.emplace_back(reader.state().names.Name(number));
  return names;
}

FeatureNumbers FindFeatures(const ModelReader& reader, std::span<const absl::string_view> names) {
  const Dictionary& dictionary = reader.state().names;
  FeatureNumbers found;
  found.numbers.reserve(names.size());
  for (const absl::string_view name : names) found.numbers.push_back(dictionary.Find(name));
  found.next = dictionary.size() + 1;
  return found;
}

StoredExamplesView CopyStoredExamples(const ModelReader& reader) {
  Ledger& ledger = reader.ledger();
  // Read before the copy: a change in between ends the claim by itself, and the ledger, once
  // locked, has every update of this revision.
  const storage::Counters counters = ledger.counters();
  std::optional<uint64_t> components;
  if (counters.has_components()) components = counters.components();
  const bool unchanged = ledger.examples() == 0 || components == reader.components();
  StoredExamplesView view{ledger.stored_examples().Copy(), reader.revision()};
  view.examples.complete = view.examples.complete && unchanged;
  return view;
}

bool HasProbabilities(const ModelReader& reader) {
  return reader.state().learner->probabilistic() != nullptr;
}

size_t CountWeights(const ModelReader& reader) {
  const Learner& learner = *reader.state().learner;
  return learner.size() * std::max<size_t>(learner.predictor().scores(), 1);
}

ModelMemory MeasureMemory(const ModelReader& reader) {
  const ModelState& state = reader.state();
  const size_t stored = reader.ledger().stored_examples().statistics().memory_bytes;
  ModelMemory memory;
  memory.state =
      state.names.bytes() + state.class_names.bytes() + stored - std::min(stored, kSmallStore);
  const LearnerStateView view = state.learner->State();
  for (const std::span<const float> array : view.arrays) memory.state += array.size_bytes();
  if (view.rows != nullptr) memory.state += view.rows->memory_bytes();
  if (state.frequencies != nullptr) memory.state += state.frequencies->memory_bytes();
  if (reader.core().documents != nullptr) memory.state += reader.core().documents->memory_bytes();
  memory.total = sizeof(Model) + sizeof(ModelCore) + memory.state + std::min(stored, kSmallStore) +
                 reader.ledger().memory_bytes();
  return memory;
}

TopWeights FindTopWeights(const Model& model, size_t limit) {
  TopWeights top;
  size_t lists = 0;
  {
    const Guarded<ModelState>::Reader state(model.core().state);
    if (state->learner->feature_weights() == nullptr) return top;
    lists = state->learner->predictor().scores();
    top.last_revision = state->revision;
  }
  for (size_t k = 0; k < lists; ++k)
    top.lists.push_back(FindLargest(model.core(), k, limit, top.last_revision));
  return top;
}

namespace {

void AddMembers(const Learner& learner, ::perceptron::v1::Model& model) {
  if (learner.member_votes() == nullptr) return;
  for (const MemberVotes::Member& member : learner.member_votes()->Members()) {
    ::perceptron::v1::Member& added = *model.add_members();
    added.set_learner(member.name);
    added.set_mistakes(member.mistakes);
    added.set_vote(member.vote);
    added.set_retired(member.retired);
  }
}

// Of a model that is not in memory.
TheoremContext StoredTheoremContext(const storage::ModelHeader& header,
                                    const storage::Counters& counters) {
  TheoremContext context;
  // If this server cannot read the settings, the state is not known, as where components are not: a list of other
  // models is not to fail.
  context.composed = true;
  if (const auto settings = ReadSettings(header.model()); settings.ok())
    context = FixedTheoremContext(*settings);
  context.margin_of_interest = header.model().margin_of_interest();
  context.sampled = counters.sampled();
  context.sample_complete = counters.sample_complete();
  return context;
}

ModelSummary SummarizeLoaded(const Model& model, ::perceptron::v1::Model settings,
                             ComponentAccess access) {
  ModelSummary summary;
  summary.id = model.id();
  summary.settings = std::move(settings);
  {
    const ModelReader reader(model, access);
    summary.report = MakeReport(reader);
    AddMembers(*reader.state().learner, summary.settings);
  }
  summary.journal = *Guarded<JournalUse>::Reader(model.core().journal_use);
  summary.stored_examples = model.core().ledger.stored_examples().statistics();
  summary.in_memory = true;
  summary.epoch = model.core().epoch.load(std::memory_order_acquire);
  summary.revision = summary.report.updates();
  return summary;
}

absl::StatusOr<ModelSummary> SummarizeStored(const storage::ModelHeader& header,
                                             ::perceptron::v1::Model settings, Journal& journal) {
  absl::StatusOr<storage::Counters> counters = journal.LoadCounters(header.id());
  if (!counters.ok()) return JournalError(counters.status(), header.model().name());
  ModelSummary summary;
  summary.id = header.id();
  summary.settings = std::move(settings);
  summary.report = Progress(*counters).MakeStoredReport(StoredTheoremContext(header, *counters));
  summary.revision = summary.report.updates();
  return summary;
}

}  // namespace

ModelSummary Summarize(const Model& model, ComponentAccess access) {
  using Settings = std::shared_ptr<const ::perceptron::v1::Model>;
  const Settings settings = *Guarded<Settings>::Reader(model.core().listed_settings);
  return SummarizeLoaded(model, *settings, access);
}

absl::StatusOr<ModelSummary> Summarize(const storage::ModelHeader& header,
                                       const std::shared_ptr<const Model>& loaded, Journal& journal,
                                       ComponentAccess access) {
  if (loaded == nullptr || loaded->id() != header.id())
    return SummarizeStored(header, header.model(), journal);
  ModelSummary summary = SummarizeLoaded(*loaded, header.model(), access);
  if (loaded->settings().new_classes == NewClasses::kNamed) {
    const std::vector<std::string> names = LabelNames(*loaded);
    summary.settings.mutable_label_names()->Assign(names.begin(), names.end());
  }
  return summary;
}

absl::StatusOr<ModelSummary> SummarizeForList(const storage::ModelHeader& header,
                                              const std::shared_ptr<const Model>& loaded,
                                              Journal& journal) {
  ::perceptron::v1::Model settings = ListedSettings(header.model());
  if (loaded == nullptr || loaded->id() != header.id())
    return SummarizeStored(header, std::move(settings), journal);
  ModelSummary summary =
      SummarizeLoaded(*loaded, std::move(settings), ComponentAccess::kOnlyInMemory);
  summary.memory_bytes = MeasureMemory(*loaded).total;
  return summary;
}

}  // namespace perceptrond
