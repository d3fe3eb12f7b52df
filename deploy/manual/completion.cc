#include "deploy/manual/completion.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace perceptrond::manual {
namespace {

bool IsModel(const Value& value) {
  return value.kind == Kind::kModel || value.kind == Kind::kModelList;
}

}  // namespace

bool NamesModels(const Command& program) {
  const auto is_model = [](const auto& part) { return IsModel(part.value); };
  return std::any_of(program.options.begin(), program.options.end(), is_model) ||
         std::any_of(program.arguments.begin(), program.arguments.end(), is_model) ||
         std::any_of(program.subcommands.begin(), program.subcommands.end(), NamesModels);
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string Brief(const std::string& text) {
  std::string brief = text.substr(0, std::min(text.find("; "), text.find(". ")));
  if (!brief.empty() && brief.back() == '.') brief.pop_back();
  return brief;
}

}  // namespace perceptrond::manual
