#include "client/message_encoder.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "client/era_names.h"
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

void MessageEncoder::StartConnection(uint32_t table_size, size_t most_bytes) {
  if (most_bytes > 0) bytes_per_message_ = std::min(bytes_per_message_, most_bytes / 4);
  table_size_ = NameTableSize(table_size);
  appended_ = 0;
  resting_ = 0;
  era_ = nullptr;
}

bool MessageEncoder::Changes(const ExampleColumns& rows) const {
  return rows.has_feature_names() || (compact_ && rows.indices_size() + rows.values_size() > 0);
}

void MessageEncoder::Encode(const ExampleColumns& rows, const NameNumbers& names,
                            ExampleColumns* columns) {
  *columns = rows;
  if (rows.has_feature_names()) {
    if (MayUseTable(rows, names)) {
      columns->clear_feature_names();
      NumberInTable(names, columns);
    } else {
      list_.Make({columns->mutable_indices()->mutable_data(),
                  static_cast<size_t>(columns->indices_size())},
                 names.end);
      names.era->CopyTo(list_.numbers(), columns->mutable_feature_names());
    }
    sorter_.SortRows(columns);
  }
  if (!compact_) return;
  if (columns->indices_size() > 0) TakeDifferences(columns);
  if (columns->values_size() > 0) HalveValues(columns);
}

bool MessageEncoder::MayUseTable(const ExampleColumns& rows, const NameNumbers& names) {
  const uint32_t most = MostAppended(table_size_);
  if (!rows.has_feature_names() || most == 0) return false;
  if (resting_ > 0) return --resting_, false;
  // Numbers have 32 bits.
  return names.count <= most && appended_ < std::numeric_limits<uint32_t>::max() - most;
}

bool MessageEncoder::HoldsAllNames(const NameNumbers& names, perceptron::v1::NameColumn* appended) {
  if (names.era != era_) {
    era_ = names.era;
    first_in_order_ = appended_;
    in_order_ = 0;
    out_of_order_ = false;
  }
  if (out_of_order_) return false;
  const uint32_t end = std::max(in_order_, names.end);
  // A message that follows some with names of their own has their names to append as well.
  if (end <= table_size_ && end - in_order_ <= MostAppended(table_size_) &&
      names.era->CopyTo(in_order_, end, bytes_per_message_, appended)) {
    appended_ += end - in_order_;
    in_order_ = end;
    return true;
  }
  out_of_order_ = true;
  in_table_.resize(in_order_);
  std::iota(in_table_.begin(), in_table_.end(), int64_t{first_in_order_});
  return false;
}

void MessageEncoder::NumberInTable(const NameNumbers& names, ExampleColumns* columns) {
  const bool was_full = appended_ >= table_size_;
  // Present even if it stays empty: the indices are numbers then.
  auto* const appended = columns->mutable_stream_names();
  uint32_t* const indices = columns->mutable_indices()->mutable_data();
  const auto count = static_cast<size_t>(columns->indices_size());
  if (HoldsAllNames(names, appended)) {
    for (size_t i = 0; i < count; ++i) indices[i] += first_in_order_;
  } else {
    list_.Make({indices, count}, names.end);
    LookUpNames(names, appended);
    for (size_t i = 0; i < count; ++i) indices[i] = numbers_[indices[i]];
  }
  // A table that is full and of little use is tried again after some messages.
  constexpr int kRest = 15;
  const bool churns = 4 * static_cast<size_t>(appended->lengths_size()) > names.count;
  if (was_full && churns && !compact_) resting_ = kRest;
}

void MessageEncoder::LookUpNames(const NameNumbers& names, perceptron::v1::NameColumn* appended) {
  // Names with older numbers may leave the table before the end of the message.
  const int64_t oldest = int64_t{appended_} - (table_size_ - MostAppended(table_size_));
  constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
  if (in_table_.size() < names.end) in_table_.resize(names.end, kNever);
  numbers_.clear();
  std::vector<uint32_t> added;
  for (const uint32_t name : list_.numbers()) {
    if (in_table_[name] < oldest) {
      in_table_[name] = appended_++;
      added.push_back(name);
    }
    numbers_.push_back(static_cast<uint32_t>(in_table_[name]));
  }
  names.era->CopyTo(added, appended);
}

}  // namespace perceptrond::client
