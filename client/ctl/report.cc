#include "client/ctl/report.h"

#include <google/protobuf/util/time_util.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/connection.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"
#include "core/report/format.h"
#include "core/report/learner_text.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;
using Composition = v1::FeatureSpace::Composition;

const char* OutputText(Composition::Output output) {
  switch (output) {
    case Composition::OUTPUT_STEP:
      return " (step)";
    case Composition::OUTPUT_SIGN:
      return " (sign)";
    case Composition::OUTPUT_SCORE:
      return " (score)";
    default:
      return "";
  }
}

std::string DescribeComposition(const Composition& composition) {
  std::string text = "the outputs of";
  for (const Composition::Input& input : composition.inputs()) {
    absl::StrAppend(&text, text.back() == 'f' ? " " : ", ",
                    PrintableInLine(std::string(ModelId(input.model()))));
    absl::StrAppend(&text, OutputText(input.output()));
  }
  return text;
}

// "text, presence of words 1 to 2 and characters 3 to 5, l2 norm 1, 2^20 weights".
std::string DescribeText(const v1::FeatureSpace::Text& text) {
  using Text = v1::FeatureSpace::Text;
  std::vector<std::string> grams;
  if (text.max_words() > 0)
    grams.push_back(text.max_words() == 1 ? "words"
                                          : absl::StrCat("words 1 to ", text.max_words()));
  if (text.max_characters() > 0)
    grams.push_back(
        absl::StrCat("characters ", text.min_characters(), " to ", text.max_characters()));
  const char* const value = text.value() == Text::VALUE_COUNT       ? "counts"
                            : text.value() == Text::VALUE_LOG_COUNT ? "log counts"
                                                                    : "presence";
  return absl::StrCat("text, ", value, " of ", absl::StrJoin(grams, " and "),
                      text.inverse_document_frequency() ? ", idf" : "",
                      text.keep_norm() ? "" : ", l2 norm 1", ", 2^", text.bits(), " weights");
}

std::string DescribeProducts(const v1::FeatureMap::Products& products) {
  std::string text = "products of groups";
  for (const v1::FeatureMap::Products::Pair& pair : products.pairs())
    absl::StrAppend(&text, " ", pair.first(), ":", pair.second());
  return text;
}

void Weights(std::string_view of, const v1::WeightVector& weights, std::string* out) {
  absl::StrAppendFormat(out, "%-13s %d non-zero, bias %g\n", std::string(of), weights.values_size(),
                        weights.bias());
  for (int i = 0; i < weights.values_size(); ++i) {
    const std::string feature = i < weights.names_size()     ? weights.names(i)
                                : i < weights.indices_size() ? absl::StrCat(weights.indices(i))
                                                             : "?";
    absl::StrAppendFormat(out, "  %s\t%s\n", PrintableInLine(feature), Shortest(weights.values(i)));
  }
}

// "-": not known.
std::string Known(bool known, double value) {
  return known ? absl::StrFormat("%g", value) : std::string("-");
}

void LearningCurve(const v1::Model& model, std::string* out) {
  constexpr char kLine[] = "  %12s %12s %12s %12s %12s %12s %12s\n";
  absl::StrAppendFormat(out, "learning curve:\n");
  absl::StrAppendFormat(out, kLine, "REVISION", "EXAMPLES", "MISTAKES", "NORM", "CEILING", "FLOOR",
                        "ERROR");
  for (const v1::LearningCurvePoint& point : model.learning_curve()) {
    absl::StrAppendFormat(
        out, kLine, absl::StrCat(point.revision()), absl::StrCat(point.examples()),
        absl::StrCat(point.mistakes()), Known(true, point.weight_norm()),
        Known(point.has_margin_ceiling(), point.margin_ceiling()),
        Known(point.has_margin_floor(), point.margin_floor()),
        point.has_window_error() ? Percent(point.window_error()) : std::string("-"));
  }
}

// "366, at most 1,000".
std::string Filled(uint64_t stored, uint64_t most) {
  return absl::StrCat(stored == 0 ? "none yet" : Grouped(stored), ", at most ", Grouped(most));
}

absl::Duration ExpireAfter(const v1::Model& model) {
  return absl::Seconds(model.expire_after().seconds()) +
         absl::Nanoseconds(model.expire_after().nanos());
}

// "30d after its last use: 2027-01-02T03:04:05Z, if it is not used before".
std::string DescribeExpiry(const v1::Model& model) {
  const absl::Duration after = ExpireAfter(model);
  const bool whole_days = after % absl::Hours(24) == absl::ZeroDuration();
  std::string text = absl::StrCat(
      whole_days ? absl::StrCat(after / absl::Hours(24), "d") : absl::FormatDuration(after),
      " after its last use");
  if (!model.has_expire_time()) return text;
  google::protobuf::Timestamp time = model.expire_time();
  time.set_nanos(0);
  return absl::StrCat(text, ": ", google::protobuf::util::TimeUtil::ToString(time),
                      ", if it is not used before");
}

std::string DescribeStored(const v1::StoredExamples& stored) {
  std::vector<std::string> parts;
  if (stored.max_updates() > 0)
    parts.push_back(absl::StrCat("examples that caused updates: ",
                                 Filled(stored.updates(), stored.max_updates())));
  if (stored.max_sample() > 0)
    parts.push_back(
        absl::StrCat("sample of different examples: ", Filled(stored.sample(), stored.max_sample()),
                     stored.complete() && stored.sample() > 0 ? " (all examples seen)" : ""));
  return absl::StrJoin(parts, "; ");
}

}  // namespace

std::string DescribeInput(const v1::FeatureSpace& space) {
  if (space.has_dense()) {
    const int64_t dimension = space.dense().dimension();
    return absl::StrCat("dense, ", dimension, dimension == 1 ? " dimension" : " dimensions");
  }
  if (space.has_text()) return DescribeText(space.text());
  if (space.has_hashed()) return absl::StrCat("hashed, 2^", space.hashed().bits(), " weights");
  if (space.has_composition()) return DescribeComposition(space.composition());
  if (!space.has_named()) return "not set";
  const uint32_t cap = space.named().max_features();
  return absl::StrCat("named, at most ", Grouped(cap == 0 ? 1'048'576u : cap), " features");
}

const v1::FeatureSpace& ExampleSpace(const v1::FeatureSpace& space) {
  return space.has_composition() ? space.composition().example_space() : space;
}

std::string DescribeMap(const v1::FeatureMap& map) {
  switch (map.map_case()) {
    case v1::FeatureMap::kPolynomial:
      return absl::StrFormat("polynomial of degree %d%s", map.polynomial().degree(),
                             map.polynomial().interactions_only() ? ", interactions only" : "");
    case v1::FeatureMap::kProducts:
      return DescribeProducts(map.products());
    case v1::FeatureMap::kFourier:
      return absl::StrFormat("%d random Fourier features, gamma %g, seed %d",
                             map.fourier().dimension(), map.fourier().gamma(),
                             map.fourier().seed());
    case v1::FeatureMap::MAP_NOT_SET:
      break;
  }
  return "";
}

std::string DescribeSpace(const v1::FeatureSpace& space) {
  const std::string map = DescribeMap(space.map());
  return absl::StrCat(DescribeInput(space), map.empty() ? "" : "; ", map);
}

std::string DescribeState(v1::ModelState state) {
  return state == v1::MODEL_STATE_FROZEN ? "frozen (predicts, does not learn)" : "active";
}

std::string DescribeReport(const v1::ConvergenceReport& report) {
  std::string text;
  for (const std::string& line : FormatReport(report))
    absl::StrAppend(&text, "  ", PrintableInLine(line), "\n");
  return text;
}

namespace {

std::string DescribeMembers(const v1::Model& model) {
  std::string text;
  for (const v1::Member& member : model.members()) {
    absl::StrAppend(&text, "  ", PrintableInLine(member.learner()), ": ");
    const std::string mistakes = Grouped(member.mistakes());
    if (member.retired()) {
      absl::StrAppend(&text, "retired after ", mistakes, " mistakes\n");
    } else {
      absl::StrAppendFormat(&text, "%.3g %% of the votes, %s mistakes\n", 100 * member.vote(),
                            mistakes);
    }
  }
  return text;
}

}  // namespace

std::string DescribeModel(const v1::Model& model) {
  std::string text = absl::StrCat(PrintableInLine(model.name()), "\n");
  if (!model.description().empty()) {
    absl::StrAppend(&text, PrintableInLine(model.description()), "\n");
  }
  absl::StrAppend(&text, "state:        ", DescribeState(model.state()), "\n");
  absl::StrAppend(&text, "features:     ", DescribeSpace(model.feature_space()), "\n");
  absl::StrAppend(&text, "learner:      ", FormatLearner(model.learner()), "\n");
  if (model.learner().has_classes()) {
    absl::StrAppend(&text, "classes:      ", DescribeClasses(model), "\n");
  } else if (model.label_names_size() == 2) {
    absl::StrAppend(&text, "labels:       -1 ", PrintableInLine(model.label_names(0)), ", +1 ",
                    PrintableInLine(model.label_names(1)), "\n");
  }
  if (model.margin_of_interest() > 0) {
    absl::StrAppendFormat(&text, "margin:       of interest %g\n", model.margin_of_interest());
  }
  const v1::StoredExamples& stored = model.stored_examples();
  if (stored.max_updates() > 0 || stored.max_sample() > 0) {
    absl::StrAppend(&text, "stores:       ", DescribeStored(stored), "\n");
  }
  if (model.has_expire_after()) {
    absl::StrAppend(&text, "expires:      ", DescribeExpiry(model), "\n");
  }
  if (model.has_stored_predictions()) {
    const v1::StoredPredictions& kept = model.stored_predictions();
    absl::StrAppend(&text, "predictions:  kept for their labels ",
                    absl::FormatDuration(absl::Seconds(kept.max_age().seconds()) +
                                         absl::Nanoseconds(kept.max_age().nanos())),
                    ", at most ", Grouped(kept.max_bytes() >> 10), " KiB",
                    kept.durable() ? ", across restarts\n" : "\n");
  }
  absl::StrAppend(&text, "revision:     ", model.revision(), "\n");
  if (model.has_stale_since()) {
    absl::StrAppend(
        &text, "stale since:  ", google::protobuf::util::TimeUtil::ToString(model.stale_since()),
        ": the server that writes the model does not answer\n");
  }
  absl::StrAppend(&text, "etag:         ", model.etag(), "\n");
  absl::StrAppend(&text, "convergence:\n", DescribeReport(model.report()));
  if (model.members_size() > 0) absl::StrAppend(&text, "members:\n", DescribeMembers(model));
  const std::vector<std::string> names(model.label_names().begin(), model.label_names().end());
  for (int i = 0; i < model.weights().vectors_size(); ++i) {
    const bool multiclass = model.learner().has_classes();
    Weights(multiclass ? absl::StrCat("weights of ", PrintableInLine(ClassName(i, names)), ":")
                       : std::string("weights:"),
            model.weights().vectors(i), &text);
  }
  if (model.learning_curve_size() > 0) LearningCurve(model, &text);
  return text;
}

}  // namespace perceptrond::client
