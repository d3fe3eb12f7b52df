#include "client/message_encoder.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <string_view>

#include "client/row.h"

namespace perceptrond::client {
namespace {

using perceptron::v1::Example;
using perceptron::v1::ExampleColumns;

constexpr uint32_t kLeastTableNames = 4;

// The IEEE binary16 number that equals `value`; absent if there is none.
std::optional<uint16_t> ToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fff'ffff;
  if (magnitude == 0) return sign;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const uint32_t fraction = magnitude & 0x7f'ffff;
  if (exponent > 15 || exponent < -24) return std::nullopt;
  // Below 2^-14 numbers are multiples of 2^-24.
  const int dropped = exponent >= -14 ? 13 : -1 - exponent;
  const uint32_t significand = exponent >= -14 ? fraction : fraction | 0x80'0000;
  if ((significand & ((1u << dropped) - 1)) != 0) return std::nullopt;
  const uint32_t biased = exponent >= -14 ? static_cast<uint32_t>(exponent + 15) << 10 : 0;
  return static_cast<uint16_t>(sign | biased | significand >> dropped);
}

// Replaces the values by half-precision numbers, if that changes none.
void HalveValues(ExampleColumns* columns) {
  std::string halves;
  halves.reserve(2 * static_cast<size_t>(columns->values_size()));
  for (const float value : columns->values()) {
    const std::optional<uint16_t> half = ToHalf(value);
    if (!half.has_value()) return;
    halves.push_back(static_cast<char>(*half & 0xff));
    halves.push_back(static_cast<char>(*half >> 8));
  }
  columns->set_half_values(std::move(halves));
  columns->clear_values();
}

// Replaces the indices, which ascend within each row, by their differences.
void TakeDifferences(ExampleColumns* columns) {
  auto* const deltas = columns->mutable_index_deltas();
  deltas->Reserve(columns->indices_size());
  int i = 0;
  for (const uint32_t end : columns->row_ends()) {
    // One more than the index before; 0 before the first.
    uint32_t least = 0;
    for (; i < static_cast<int>(end); ++i) {
      deltas->AddAlreadyReserved(columns->indices(i) - least);
      least = columns->indices(i) + 1;
    }
  }
  columns->clear_indices();
}

std::vector<std::string_view> NamesOf(const perceptron::v1::NameColumn& column) {
  std::vector<std::string_view> names;
  std::string_view rest = column.text();
  for (const uint32_t length : column.lengths()) {
    names.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return names;
}

// Copies all but names, indices and rows' ends.
void CopyTargets(const ExampleColumns& rows, ExampleColumns* columns) {
  *columns->mutable_labels() = rows.labels();
  *columns->mutable_label_names() = rows.label_names();
  *columns->mutable_weights() = rows.weights();
}

void SetTarget(const ExampleColumns& rows, int row, Example* example) {
  if (row < rows.weights_size()) example->set_weight(rows.weights(row));
  if (row >= rows.labels_size() || rows.labels(row) == Row::kNoLabel) return;
  if (rows.label_names_size() > 0) {
    example->set_label_name(rows.label_names(rows.labels(row)));
  } else {
    example->set_label(rows.labels(row));
  }
}

}  // namespace

uint32_t NameTableSize(uint32_t wanted) {
  return wanted < kLeastTableNames ? 0 : std::bit_floor(std::min(wanted, kMostTableNames));
}

void MessageEncoder::StartConnection(uint32_t table_size) {
  table_ = NameTable(NameTableSize(table_size));
}

bool MessageEncoder::Changes(const ExampleColumns& rows) const {
  return rows.has_feature_names() || (compact_ && rows.indices_size() + rows.values_size() > 0);
}

void MessageEncoder::Encode(const ExampleColumns& rows, ExampleColumns* columns,
                            Examples* examples) {
  const bool named = rows.has_feature_names();
  if (named && table_.size() > 0) {
    const auto names = static_cast<size_t>(rows.feature_names().lengths_size());
    if (!table_.HasRoomFor(names)) return EncodeNested(rows, examples);
    EncodeNumbers(rows, columns);
  } else {
    *columns = rows;
  }
  if (named) SortRows(columns);
  if (!compact_) return;
  if (columns->indices_size() > 0) TakeDifferences(columns);
  if (columns->values_size() > 0) HalveValues(columns);
}

void MessageEncoder::EncodeNumbers(const ExampleColumns& rows, ExampleColumns* columns) {
  table_.StartMessage();
  const perceptron::v1::NameColumn& names = rows.feature_names();
  numbers_.clear();
  size_t begin = 0;
  for (const uint32_t length : names.lengths()) {
    const std::string_view name = std::string_view(names.text()).substr(begin, length);
    begin += length;
    const auto [number, appended] = table_.Number(name);
    numbers_.push_back(number);
    if (!appended) continue;
    columns->mutable_stream_names()->mutable_text()->append(name);
    columns->mutable_stream_names()->add_lengths(length);
  }
  auto* const indices = columns->mutable_indices();
  indices->Reserve(rows.indices_size());
  for (const uint32_t position : rows.indices()) indices->AddAlreadyReserved(numbers_[position]);
  *columns->mutable_row_ends() = rows.row_ends();
  *columns->mutable_values() = rows.values();
  CopyTargets(rows, columns);
}

void MessageEncoder::SortRows(ExampleColumns* columns) {
  uint32_t* const indices = columns->mutable_indices()->mutable_data();
  float* const values =
      columns->values_size() > 0 ? columns->mutable_values()->mutable_data() : nullptr;
  size_t begin = 0;
  for (const uint32_t end : columns->row_ends()) {
    sorter_.Sort(indices + begin, values == nullptr ? nullptr : values + begin, end - begin);
    begin = end;
  }
}

void MessageEncoder::EncodeNested(const ExampleColumns& rows, Examples* examples) const {
  const std::vector<std::string_view> names = NamesOf(rows.feature_names());
  int i = 0;
  for (int row = 0; row < rows.row_ends_size(); ++row) {
    Example* const example = examples->Add();
    SetTarget(rows, row, example);
    auto* const features = example->mutable_named();
    for (; i < static_cast<int>(rows.row_ends(row)); ++i) {
      const std::string_view name = names[rows.indices(i)];
      features->add_names(name.data(), name.size());
      if (rows.values_size() > 0) features->add_values(rows.values(i));
    }
  }
}

}  // namespace perceptrond::client
