// Reads rows of names: builds the vocabulary of the request, and rows of positions in it.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/features/feature_space.h"
#include "core/vector/check.h"
#include "core/vector/name.h"
#include "server/services/inference_batch.h"
#include "server/sessions/example_batch.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// Returns the vocabulary, which is every name except "" once, in ascending order, and sets
// `numbers` to the position of each name in it.
std::vector<absl::string_view> MakeVocabulary(const std::vector<absl::string_view>& names,
                                              std::vector<uint32_t>& numbers) {
  absl::flat_hash_map<absl::string_view, uint32_t> positions;
  std::vector<absl::string_view> vocabulary;
  for (const absl::string_view name : names) {
    if (!name.empty() && positions.emplace(name, 0).second) vocabulary.push_back(name);
  }
  std::sort(vocabulary.begin(), vocabulary.end());
  for (size_t i = 0; i < vocabulary.size(); ++i)
    positions[vocabulary[i]] = static_cast<uint32_t>(i);
  numbers.assign(names.size(), 0);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) numbers[i] = positions.at(names[i]);
  }
  return vocabulary;
}

}  // namespace

absl::Status InferenceBatch::ReadNamed(v1::ExampleColumns& columns) {
  SentNames sent;
  if (absl::Status status = CheckNameShapes(); !status.ok()) return status;
  if (absl::Status status = ReadNameRows(sent); !status.ok()) return status;
  for (const absl::string_view name : MakeVocabulary(sent.names, sent.numbers))
    columns.add_feature_names(std::string(name));
  if (absl::Status status = CheckNameRows(sent); !status.ok()) return status;
  positions_.clear();
  size_t begin = 0;
  for (const uint32_t end : sent.row_ends) {
    absl::Status status = AppendNameRow(sent, begin, end, columns);
    if (!status.ok()) return status;
    begin = end;
  }
  return AppendNameValues(columns);
}

absl::Status InferenceBatch::CheckNameShapes() const {
  const InferenceTensor& names = *tensor(Role::kNames);
  if (!padded()) {
    absl::Status status = names.CheckRank(1, "[rows, names] or [names of all rows]");
    if (!status.ok()) return status;
  }
  const auto& shape = names.message().shape();
  const std::optional<InferenceTensor>& values = tensor(Role::kValues);
  if (values.has_value() &&
      !std::equal(shape.begin(), shape.end(), values->message().shape().begin(),
                  values->message().shape().end()))
    return values->Invalid("WRONG_SHAPE",
                           "has another shape than names; send one value for each name");
  // Checked before memory is allocated: rows without names take no bytes of the message.
  if (!padded() || names.size(0) <= ExampleBatch::kMaxExamples) return absl::OkStatus();
  return names.Invalid("TOO_MANY_EXAMPLES",
                       absl::StrCat(names.size(0), " examples; a message can hold at most ",
                                    ExampleBatch::kMaxExamples));
}

absl::Status InferenceBatch::CheckName(absl::string_view name, size_t position) const {
  if (name.empty() && padded()) return absl::OkStatus();
  if (name.empty() || name.size() > kMaxNameBytes) {
    return tensor(Role::kNames)
        ->Invalid("BAD_NAME",
                  absl::StrCat("has ", name.size(), " bytes; a name has 1 to ", kMaxNameBytes),
                  position);
  }
  if (IsValidUtf8({name.data(), name.size()})) return absl::OkStatus();
  return tensor(Role::kNames)->Invalid("BAD_NAME", "is not UTF-8", position);
}

absl::Status InferenceBatch::ReadNameRows(SentNames& sent) const {
  const InferenceTensor& names = *tensor(Role::kNames);
  if (absl::Status status = names.AppendStrings(sent.names); !status.ok()) return status;
  for (size_t i = 0; i < sent.names.size(); ++i) {
    if (absl::Status status = CheckName(sent.names[i], i); !status.ok()) return status;
  }
  if (!padded()) return ReadRowEnds(sent.row_ends);
  for (uint64_t row = 1; row <= names.size(0); ++row)
    sent.row_ends.Add(static_cast<uint32_t>(row * names.size(1)));
  return absl::OkStatus();
}

absl::Status InferenceBatch::CheckNameRows(const SentNames& sent) const {
  Batch batch;
  batch.row_ends = {sent.row_ends.data(), static_cast<size_t>(sent.row_ends.size())};
  batch.indices = sent.numbers;
  const ValidationError error = CheckColumns(batch);
  return error ? ToTensorError(ReasonName(error.code), error.field, error.description)
               : absl::OkStatus();
}

absl::Status InferenceBatch::AppendNameRow(const SentNames& sent, size_t begin, size_t end,
                                           v1::ExampleColumns& columns) {
  std::vector<std::pair<uint32_t, size_t>> row;
  for (size_t i = begin; i < end; ++i) {
    if (!sent.names[i].empty()) row.emplace_back(sent.numbers[i], i);
  }
  std::sort(row.begin(), row.end());
  for (size_t i = 0; i < row.size(); ++i) {
    const auto [number, position] = row[i];
    if (i > 0 && row[i - 1].first == number) {
      return tensor(Role::kNames)
          ->Invalid("REPEATED_NAME",
                    absl::StrCat("\"", absl::Utf8SafeCHexEscape(sent.names[position]),
                                 "\" occurs twice in row ", columns.row_ends_size(),
                                 "; a name may occur once in a row"),
                    position);
    }
    columns.add_indices(number);
    positions_.push_back(position);
  }
  columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
  return absl::OkStatus();
}

absl::Status InferenceBatch::AppendNameValues(v1::ExampleColumns& columns) const {
  if (!Has(Role::kValues)) return absl::OkStatus();
  google::protobuf::RepeatedField<float> sent;
  if (absl::Status status = tensor(Role::kValues)->AppendFloats(sent); !status.ok()) return status;
  columns.mutable_values()->Reserve(static_cast<int>(positions_.size()));
  for (const size_t position : positions_) columns.add_values(sent[static_cast<int>(position)]);
  return absl::OkStatus();
}

}  // namespace perceptrond
