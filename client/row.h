// Row: one example to send to a server.
//
//   Row row;
//   row.indices = {0, 7};
//   row.values = {0.5, 2};
//   row.label = 1;
//
// A row keeps its memory: Clear() and refill it for the next example. Names share one buffer, so
// that refilling allocates nothing once the buffer is large enough.
//
// A row for a model with a text space has its text alone:
//
//   row.kind = RowKind::kText;
//   row.text = "Free entry! Win a prize";
//
// A row whose label came after its prediction (PredictOptions::include_prediction_ids) has the id:
//
//   row.kind = RowKind::kPredictionId;
//   row.text = response.prediction_ids(0);
//
// A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace perceptrond::client {

enum class RowKind {
  // Features have indices and values.
  kSparse,
  // Features have names and values.
  kNamed,
  // One value for every dimension.
  kDense,
  // A text, which the server splits into features.
  kText,
  // The id of a prediction, whose features the server keeps. For learning.
  kPredictionId,
};

class Row {
 public:
  RowKind kind = RowKind::kSparse;
  // kSparse: distinct indices in any order; ascending order is fastest.
  std::vector<uint32_t> indices;
  // One finite value per feature; empty for kSparse and kNamed: all values are 1.
  std::vector<float> values;
  // kText: at most 1 MiB of UTF-8. kPredictionId: the id.
  std::string text;
  // kNamed: the values of a name that occurs again are added to those before; else it is an error.
  bool adds_repeated_names = false;
  // The label of a row without one.
  static constexpr int kNoLabel = std::numeric_limits<int32_t>::min();
  // -1 or +1; for multiclass models the number of the class; kNoLabel: none, or label_name is set.
  int label = kNoLabel;
  // The name of the label or class, at most 1024 bytes of UTF-8; it may be new to the model. Empty:
  // the label is a number.
  std::string label_name;
  // Weight of the example in learning, > 0. Default 1.
  float weight = 1;

  void Clear() {
    kind = RowKind::kSparse;
    indices.clear();
    values.clear();
    text.clear();
    adds_repeated_names = false;
    label = kNoLabel;
    label_name.clear();
    weight = 1;
    name_bytes_ = 0;
    ends_.clear();
  }

  bool has_label() const { return label != kNoLabel || !label_name.empty(); }

  static constexpr size_t kNamePadding = 16;

  // Appends the name of a feature: `name`, or prefix + separator + name.
  void AddName(std::string_view name) {
    Append(name);
    ends_.push_back(name_bytes_);
  }
  void AddName(std::string_view prefix, char separator, std::string_view name) {
    Append(prefix);
    Append(std::string_view(&separator, 1));
    AddName(name);
  }
  // Adds prefix + name for each of the names. kNamePadding bytes from its begin on can be read of
  // each and of the prefix.
  void AddPaddedNames(std::string_view prefix, const std::string_view* names, size_t count) {
    size_t bytes = count * prefix.size();
    for (size_t i = 0; i < count; ++i) bytes += names[i].size();
    Reserve(bytes);
    ends_.resize(ends_.size() + count);
    size_t* const ends = ends_.data() + (ends_.size() - count);
    char* const text = names_.data();
    size_t end = name_bytes_;
    for (size_t i = 0; i < count; ++i) {
      if (!prefix.empty()) end += CopyPadded(prefix, text + end);
      end += CopyPadded(names[i], text + end);
      ends[i] = end;
    }
    name_bytes_ = end;
  }
  size_t name_count() const { return ends_.size(); }
  // Of all names together.
  size_t name_bytes() const { return name_bytes_; }
  // The name of feature i; valid until the row changes. kNamePadding bytes more can be read.
  std::string_view name(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(names_.data() + begin, ends_[i] - begin);
  }

  // A text or an id counts as one.
  size_t feature_count() const {
    switch (kind) {
      case RowKind::kSparse:
        return indices.size();
      case RowKind::kNamed:
        return ends_.size();
      case RowKind::kDense:
        return values.size();
      case RowKind::kText:
      case RowKind::kPredictionId:
        return 1;
    }
    return 0;
  }

 private:
  void Append(std::string_view text) {
    Reserve(text.size());
    Copy(text, names_.data() + name_bytes_);
    name_bytes_ += text.size();
  }
  static size_t CopyPadded(std::string_view text, char* to) {
    std::memcpy(to, text.data(), kNamePadding);
    if (text.size() > kNamePadding) std::memcpy(to, text.data(), text.size());
    return text.size();
  }
  void Reserve(size_t bytes) {
    if (names_.size() - name_bytes_ < bytes + kNamePadding)
      names_.resize(2 * names_.size() + bytes + kLeastNameBytes);
  }

  // Most names are too short for a call of memcpy() to pay.
  static void Copy(std::string_view from, char* to) {
    const size_t size = from.size();
    if (size < 4) {
      for (const char c : from) *to++ = c;
    } else if (size <= 8) {
      CopyEnds<uint32_t>(from, to);
    } else if (size <= 16) {
      CopyEnds<uint64_t>(from, to);
    } else {
      std::memcpy(to, from.data(), size);
    }
  }
  // Copies the first and the last bytes, which may overlap.
  template <typename Bytes>
  static void CopyEnds(std::string_view from, char* to) {
    const size_t rest = from.size() - sizeof(Bytes);
    Bytes first;
    Bytes last;
    std::memcpy(&first, from.data(), sizeof first);
    std::memcpy(&last, from.data() + rest, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + rest, &last, sizeof last);
  }

  static constexpr size_t kLeastNameBytes = 256;

  // The names, one after the other, in the first name_bytes_ bytes.
  std::string names_;
  size_t name_bytes_ = 0;
  std::vector<size_t> ends_;
};

}  // namespace perceptrond::client
