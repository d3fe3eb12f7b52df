// Any bytes as a file of examples, which may be compressed: read or refused with words, never a crash; and what is read
// and fits into a batch is what the server takes. The first byte chooses the format and its options; after 0xff the rest
// is addresses of servers.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "client/batch_builder.h"
#include "client/format/decompress.h"
#include "client/format/format.h"
#include "client/format/reader.h"
#include "client/target.h"
#include "core/features/name_table.h"
#include "core/vector/check.h"
#include "core/vector/name.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using perceptrond::client::BatchBuilder;
using perceptrond::client::Format;
using perceptrond::client::FormatKind;
using perceptrond::client::FormatOptions;
using perceptrond::client::Reader;
using perceptrond::client::Row;
using perceptrond::testing::Check;

FormatOptions Options(uint8_t choice) {
  FormatOptions options;
  options.kind = static_cast<FormatKind>((choice & 0x07) % 6);
  options.labels.zero_is_negative = (choice & 0x08) != 0;
  if ((choice & 0x10) != 0) options.labels.names = {"ham", "spam"};
  options.require_label = (choice & 0x20) != 0;
  options.index_base = (choice & 0x40) != 0 ? 1 : 0;
  options.header = (choice & 0x40) != 0;
  const bool other = (choice & 0x80) != 0;
  if (options.kind == FormatKind::kCsv) options.label_column = "1";
  // The highest bits that kinds leave: csv's texts.
  if (options.kind == FormatKind::kCsv && other && !options.require_label)
    options.text_column = "2";
  options.dense = other && options.text_column.empty();
  // Dense rows have no header.
  if (options.dense) options.header = false;
  return options;
}

template <typename T>
std::span<const T> View(const google::protobuf::RepeatedField<T>& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}

// The message is one that no server refuses for its form.
void CheckMessage(BatchBuilder& builder) {
  const size_t rows = builder.rows();
  perceptron::v1::ExampleColumns columns;
  builder.Build(&columns);
  if (columns.texts_size() > 0) {
    Check(columns.texts_size() == static_cast<int>(rows) && columns.row_ends().empty());
    for (const std::string& text : columns.texts()) Check(perceptrond::IsValidUtf8(text));
    return;
  }
  if (columns.prediction_ids_size() > 0) {
    Check(columns.prediction_ids_size() == static_cast<int>(rows) && columns.row_ends().empty());
    return;
  }
  perceptrond::NameTable names;
  Check(!names.Append(columns.feature_names().text(), View(columns.feature_names().lengths())));
  perceptrond::Batch batch;
  batch.row_ends = View(columns.row_ends());
  batch.indices = View(columns.indices());
  batch.values = View(columns.values());
  batch.labels = View(columns.labels());
  if (columns.has_feature_names()) batch.names = &names;
  batch.dense_width = columns.dense_width();
  Check(!perceptrond::CheckColumns(batch));
  Check(batch.rows() == rows);
  uint32_t limit = std::numeric_limits<uint32_t>::max();
  if (batch.names != nullptr) limit = names.end();
  if (batch.dense_width > 0) limit = batch.dense_width;
  for (size_t i = 0; i < rows; ++i) {
    double squared_norm = 0;
    const perceptrond::Row row = batch.row(i);
    // The largest index of all is no model's.
    if (batch.names == nullptr && row.size > 0 && row.index(row.size - 1) == limit) continue;
    Check(perceptrond::CheckRow(row, limit, row.size, &squared_norm) ==
          perceptrond::ValidationCode::kNone);
  }
}

// The next example, if there is one, goes to the batch. False: the input has no more.
bool ReadExample(Reader& reader, const FormatOptions& options, BatchBuilder& batch) {
  Row row;
  const absl::StatusOr<bool> more = reader.Next(&row);
  if (!more.ok()) {
    Check(!more.status().message().empty());
    if (absl::IsInvalidArgument(more.status())) return true;
    // Bytes that are no text, or a CSV file without usable columns.
    Check(absl::IsFailedPrecondition(more.status()) &&
          (options.kind == FormatKind::kCsv || reader.line() == 1));
    return false;
  }
  if (!*more) return false;
  Check(row.values.empty() || row.values.size() == row.feature_count());
  Check(row.label == 1 || row.label == -1 || (!row.has_label() && !options.require_label));
  if (!batch.Fits(row)) CheckMessage(batch);
  const absl::Status added = batch.Add(row);
  Check(added.ok() || absl::IsInvalidArgument(added));
  return true;
}

// The bytes, or what they are once they are decompressed: a part of it, up to any damage.
std::string Decompressed(const std::string& bytes) {
  constexpr size_t kMostBytes = 1 << 20;
  const auto source = perceptrond::client::Decompress("f", perceptrond::client::OpenMemory(&bytes));
  std::string content;
  std::vector<char> buffer(64 << 10);
  while (content.size() < kMostBytes) {
    const absl::StatusOr<size_t> count = source->Read(buffer.data(), buffer.size());
    Check(count.ok() || absl::IsDataLoss(count.status()) ||
          absl::IsResourceExhausted(count.status()));
    if (count.value_or(0) == 0) break;
    content.append(buffer.data(), *count);
  }
  return content;
}

// Addresses are read in a form that is read as itself.
void CheckAddresses(const std::string& text) {
  const absl::StatusOr<std::string> read = perceptrond::client::ReadAddresses(text);
  if (!read.ok()) return Check(!read.status().message().empty());
  Check(perceptrond::client::ReadAddresses(*read).value() == *read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] == 0xff) return CheckAddresses(bytes), 0;
  const FormatOptions options = Options(data[0]);
  const auto format = perceptrond::client::MakeFormat(options);
  Check(format.ok());
  const std::string content = Decompressed(bytes);
  Reader reader("f", perceptrond::client::OpenMemory(&content), format->get(), 0);
  BatchBuilder batch;
  int64_t line = 0;
  while (ReadExample(reader, options, batch)) {
    // Each goes on after the one before.
    Check(reader.line() > std::exchange(line, reader.line()));
  }
  CheckMessage(batch);
  return 0;
}
