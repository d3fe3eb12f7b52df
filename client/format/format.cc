#include "client/format/format.h"

namespace perceptrond::client {

absl::StatusOr<std::unique_ptr<Format>> MakeFormat(const FormatOptions& options) {
  switch (options.kind) {
    case FormatKind::kSvmlight:
      if (!options.index_base.has_value()) {
        return absl::InvalidArgumentError(
            "svmlight files number features from 0 or from 1: give --index-base 0 or --index-base "
            "1 "
            "(most published files: 1)");
      }
      if (*options.index_base != 0 && *options.index_base != 1) {
        return absl::InvalidArgumentError("--index-base must be 0 or 1");
      }
      return MakeSvmlight(options);
    case FormatKind::kVw:
      return MakeVw(options);
    case FormatKind::kCsv:
      if (options.delimiter == '"' || options.delimiter == '\n' || options.delimiter == '\r') {
        return absl::InvalidArgumentError("--delimiter must not be a quote or a newline");
      }
      return MakeCsv(options);
    case FormatKind::kJsonl:
      return MakeJsonl(options);
    case FormatKind::kText:
      return MakeText(options);
  }
  return absl::InvalidArgumentError("unknown format");
}

std::optional<FormatKind> FormatByName(std::string_view name) {
  if (name == "svmlight") return FormatKind::kSvmlight;
  if (name == "vw") return FormatKind::kVw;
  if (name == "csv") return FormatKind::kCsv;
  if (name == "jsonl") return FormatKind::kJsonl;
  if (name == "text") return FormatKind::kText;
  return std::nullopt;
}

std::optional<FormatKind> FormatByExtension(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view extension = path.substr(dot + 1);
  if (extension == "svm") return FormatKind::kSvmlight;
  if (extension == "tsv") return FormatKind::kText;
  return extension == "text" ? std::nullopt : FormatByName(extension);
}

}  // namespace perceptrond::client
