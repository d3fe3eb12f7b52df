#include "client/ctl/dimension.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace perceptrond::client {

uint64_t NeededDimension(const Row& row) {
  if (row.kind == RowKind::kDense) return row.values.size();
  // If they do not ascend, the server says so.
  return row.indices.empty() ? 0 : uint64_t{row.indices.back()} + 1;
}

absl::Status CheckDimension(const Row& row, uint32_t dimension, int index_base) {
  const uint64_t needed = NeededDimension(row);
  const bool is_dense = row.kind == RowKind::kDense;
  if (is_dense ? needed == dimension : needed <= dimension) return absl::OkStatus();
  const std::string example =
      is_dense ? absl::StrCat("the example has ", needed, " values")
               : absl::StrCat("feature ", needed - 1 + static_cast<uint64_t>(index_base),
                              " needs a dimension of at least ", needed);
  return absl::FailedPreconditionError(
      absl::StrCat(example, ", but the model's dimension is ", dimension,
                   ", and learning only the other examples would bias it; 'create "
                   "--dimension-from FILE' takes the dimension from the data"));
}

bool DropUnseen(uint32_t dimension, Row* row) {
  if (row->kind == RowKind::kDense) {
    if (row->values.size() <= dimension) return false;
    row->values.resize(dimension);
    return true;
  }
  size_t kept = 0;
  for (size_t i = 0; i < row->indices.size(); ++i) {
    if (row->indices[i] >= dimension) continue;
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
