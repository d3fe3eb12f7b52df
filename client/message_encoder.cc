#include "client/message_encoder.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "client/error.h"

namespace perceptrond::client {
namespace {

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

// Copies all but names, indices and rows' ends.
void CopyTargets(const ExampleColumns& rows, ExampleColumns* columns) {
  *columns->mutable_labels() = rows.labels();
  *columns->mutable_label_names() = rows.label_names();
  *columns->mutable_weights() = rows.weights();
}

}  // namespace

uint32_t NameTableSize(uint32_t wanted) {
  return wanted < kLeastTableNames ? 0 : std::bit_floor(std::min(wanted, kMostTableNames));
}

bool MessageEncoder::AskForLess(const absl::Status& status) {
  if (ErrorReason(status) != "UNSUPPORTED_FIELD" || (wanted_table_size_ == 0 && !compact_))
    return false;
  wanted_table_size_ = 0;
  compact_ = false;
  return true;
}

void MessageEncoder::StartConnection(uint32_t table_size) {
  table_size_ = NameTableSize(table_size);
  appended_ = 0;
  in_table_.clear();
  resting_ = 0;
}

bool MessageEncoder::Changes(const ExampleColumns& rows) const {
  return rows.has_feature_names() || (compact_ && rows.indices_size() + rows.values_size() > 0);
}

void MessageEncoder::Encode(const ExampleColumns& rows, const NameNumbers& names,
                            ExampleColumns* columns) {
  if (MayUseTable(rows)) {
    EncodeNumbers(rows, names, columns);
  } else {
    *columns = rows;
  }
  if (rows.has_feature_names()) SortRows(columns);
  if (!compact_) return;
  if (columns->indices_size() > 0) TakeDifferences(columns);
  if (columns->values_size() > 0) HalveValues(columns);
}

bool MessageEncoder::MayUseTable(const ExampleColumns& rows) {
  const uint32_t most = MostAppended(table_size_);
  if (!rows.has_feature_names() || most == 0) return false;
  if (resting_ > 0) return --resting_, false;
  // Numbers have 32 bits.
  return static_cast<uint32_t>(rows.feature_names().lengths_size()) <= most &&
         appended_ < std::numeric_limits<uint32_t>::max() - most;
}

void MessageEncoder::EncodeNumbers(const ExampleColumns& rows, const NameNumbers& names,
                                   ExampleColumns* columns) {
  // Present even if it stays empty: the indices are numbers then.
  NumberNames(rows, names, columns->mutable_stream_names());
  auto* const indices = columns->mutable_indices();
  indices->Reserve(rows.indices_size());
  for (const uint32_t position : rows.indices()) indices->AddAlreadyReserved(numbers_[position]);
  *columns->mutable_row_ends() = rows.row_ends();
  *columns->mutable_values() = rows.values();
  CopyTargets(rows, columns);
}

void MessageEncoder::NumberNames(const ExampleColumns& rows, const NameNumbers& names,
                                 perceptron::v1::NameColumn* appended) {
  if (names.era != era_) {
    in_table_.clear();
    era_ = names.era;
  }
  const bool was_full = appended_ >= table_size_;
  const std::string_view text = rows.feature_names().text();
  // Names with older numbers may leave the table before the end of the message.
  const int64_t oldest = int64_t{appended_} - (table_size_ - MostAppended(table_size_));
  constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
  numbers_.clear();
  size_t begin = 0;
  for (size_t i = 0; i < names.numbers.size(); ++i) {
    const uint32_t length = rows.feature_names().lengths(static_cast<int>(i));
    const uint32_t name = names.numbers[i];
    if (name >= in_table_.size()) in_table_.resize(2 * size_t{name} + 1, kNever);
    if (in_table_[name] < oldest) {
      in_table_[name] = appended_++;
      appended->mutable_text()->append(text.substr(begin, length));
      appended->add_lengths(length);
    }
    numbers_.push_back(static_cast<uint32_t>(in_table_[name]));
    begin += length;
  }
  // A table that is full and of little use is tried again after some messages.
  constexpr int kRest = 15;
  const bool churns = 4 * static_cast<size_t>(appended->lengths_size()) > names.numbers.size();
  if (was_full && churns && !compact_) resting_ = kRest;
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

}  // namespace perceptrond::client
