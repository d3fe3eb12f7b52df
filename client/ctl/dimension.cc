#include "client/ctl/dimension.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "perceptron/v1/model_service.pb.h"

namespace perceptrond::client {

namespace v1 = ::perceptron::v1;

uint64_t NeededDimension(const Row& row) {
  if (row.kind == RowKind::kDense) return row.values.size();
  // If they do not ascend, the server says so.
  return row.indices.empty() ? 0 : uint64_t{row.indices.back()} + 1;
}

namespace {

absl::Status Misfit(const RowTarget& target, const std::string& what) {
  return absl::FailedPreconditionError(target.prefix + what);
}

bool HasIndices(const Row& row) {
  return row.kind == RowKind::kSparse || row.kind == RowKind::kDense;
}

bool NamesNewClasses(const v1::Model& model) {
  return model.learner().classes().new_classes() == v1::Classes::NEW_CLASSES_NAMED;
}

}  // namespace

absl::Status CheckKind(const Row& row, const RowTarget& target) {
  const v1::FeatureSpace& space = target.space;
  if (row.feature_count() == 0 || row.kind == RowKind::kPredictionId) return absl::OkStatus();
  if (space.has_text() != (row.kind == RowKind::kText)) {
    return Misfit(target,
                  space.has_text()
                      ? "the example has features, but the model takes texts: the format is text, "
                        "or jsonl with \"text\""
                      : "the example is a text, but the model takes features; models created with "
                        "--text take texts");
  }
  if (space.has_dense() && row.kind == RowKind::kNamed) {
    return Misfit(target,
                  "the features have names, but the model is dense and takes indices; models "
                  "created with --named or --hash-bits take names");
  }
  if (space.has_named() && row.kind != RowKind::kNamed) {
    return Misfit(target,
                  "the features have indices, but the model takes names; models created with "
                  "--dimension take indices");
  }
  return absl::OkStatus();
}

absl::Status CheckDimension(const Row& row, const RowTarget& target, int index_base) {
  const std::optional<uint64_t> limit = IndexLimit(target.space);
  if (!HasIndices(row) || !limit.has_value()) return absl::OkStatus();
  const bool hashed = target.space.has_hashed();
  const uint64_t dimension = *limit;
  const uint64_t needed = NeededDimension(row);
  const bool exact = row.kind == RowKind::kDense && !hashed;
  if (exact ? needed == dimension : needed <= dimension) return absl::OkStatus();
  const uint64_t feature = needed - 1 + static_cast<uint64_t>(index_base);
  const std::string example =
      exact    ? absl::StrCat("the example has ", needed, " values")
      : hashed ? absl::StrCat("feature ", feature, " needs ", needed, " slots")
               : absl::StrCat("feature ", feature, " needs a dimension of at least ", needed);
  return Misfit(
      target,
      absl::StrCat(example, ", but the model", hashed ? " has " : "'s dimension is ", dimension,
                   ", and learning only the other examples would bias it; ",
                   hashed ? "'create --hash-bits' sets the number of slots"
                          : "'create --dimension-from FILE' takes the dimension from the data"));
}

absl::Status CheckKnowsNames(const v1::FeatureSpace& space) {
  if (space.has_named()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--unknown-names refuse is for models of --named; this one ",
      space.has_dense()
          ? "takes indices: --unseen-indices refuse refuses those beyond its dimension"
          : "has a weight for every name and word, in slots that they share: leave it out"));
}

std::optional<bool> HasWeightOf(const Client& client, const v1::Model& model,
                                const std::vector<std::string>& columns) {
  if (!model.feature_space().has_named()) return std::nullopt;
  const absl::flat_hash_set<absl::string_view> wanted(columns.begin(), columns.end());
  // A word of a column is the feature column=word.
  const auto is_wanted = [&](absl::string_view name) {
    if (wanted.contains(name)) return true;
    for (size_t i = name.find('='); i != absl::string_view::npos; i = name.find('=', i + 1)) {
      if (wanted.contains(name.substr(0, i))) return true;
    }
    return false;
  };
  bool has_names = false;
  bool found = false;
  v1::ListWeightsRequest request;
  request.set_model(model.name());
  // Kernels and votes have no other weights.
  request.set_terms(true);
  const absl::Status status =
      client.ListWeights(std::move(request), [&](const v1::ListWeightsResponse& page) {
        for (const v1::WeightVector& vector : page.weights().vectors()) {
          has_names = has_names || !vector.names().empty();
          // A feature map makes products, "a*b".
          found = found || absl::c_any_of(vector.names(), [&](const std::string& name) {
                    return is_wanted(name) || absl::c_any_of(absl::StrSplit(name, '*'), is_wanted);
                  });
        }
        return !found;
      });
  if (!found && (!status.ok() || !has_names)) return std::nullopt;
  return found;
}

absl::Status CheckSameLabels(const v1::Model& first, const v1::Model& other) {
  const auto refuse = [&](absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat(other.name(), what, first.name(), ", by whose labels the file is read"));
  };
  if (first.learner().has_classes() != other.learner().has_classes())
    return refuse(first.learner().has_classes() ? " has two labels, not several classes as "
                                                : " has several classes, not two labels as ");
  // Then labels are sent by their names.
  if (NamesNewClasses(first)) return absl::OkStatus();
  const bool same = std::equal(first.label_names().begin(), first.label_names().end(),
                               other.label_names().begin(), other.label_names().end());
  const bool numbers = first.label_names().empty() || other.label_names().empty();
  if (!same && (!numbers || NamesNewClasses(other))) return refuse(" has other label names than ");
  if (other.learner().classes().max_classes() < first.learner().classes().max_classes())
    return refuse(" has fewer classes than ");
  return absl::OkStatus();
}

std::optional<uint64_t> IndexLimit(const v1::FeatureSpace& space) {
  if (space.has_hashed()) return uint64_t{1} << std::min(space.hashed().bits(), 63U);
  if (space.has_dense()) return space.dense().dimension();
  return std::nullopt;
}

bool DropUnseen(uint64_t limit, Row* row) {
  if (!HasIndices(*row)) return false;
  if (row->kind == RowKind::kDense) {
    if (row->values.size() <= limit) return false;
    row->values.resize(limit);
    return true;
  }
  size_t kept = 0;
  for (size_t i = 0; i < row->indices.size(); ++i) {
    if (row->indices[i] >= limit) continue;
    row->indices[kept] = row->indices[i];
    // Without values all are 1.
    if (!row->values.empty()) row->values[kept] = row->values[i];
    ++kept;
  }
  if (kept == row->indices.size()) return false;
  row->indices.resize(kept);
  if (!row->values.empty()) row->values.resize(kept);
  return true;
}

}  // namespace perceptrond::client
