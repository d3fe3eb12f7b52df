// Names as messages hold them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perceptron/v1/example.pb.h"

namespace perceptrond::name_columns {

inline void AppendName(std::string_view name, ::perceptron::v1::NameColumn& names) {
  names.mutable_text()->append(name);
  names.add_lengths(static_cast<uint32_t>(name.size()));
}

inline std::vector<std::string> NamesOf(const ::perceptron::v1::NameColumn& column) {
  std::vector<std::string> names;
  size_t begin = 0;
  for (const uint32_t length : column.lengths()) {
    names.push_back(column.text().substr(begin, length));
    begin += length;
  }
  return names;
}

}  // namespace perceptrond::name_columns
