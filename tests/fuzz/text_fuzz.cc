// Any bytes as what is shown to people and programs: as a report, in text, figures and lines of one
// line each; as a text, in JSON that is read as the same text and holds nothing that a terminal
// obeys. The first byte chooses which.
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/wrappers.pb.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/report/format.h"
#include "core/vector/control_characters.h"
#include "core/vector/json.h"
#include "core/vector/name.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using perceptrond::testing::Check;

namespace v1 = ::perceptron::v1;

void CheckReport(std::string_view bytes) {
  v1::ConvergenceReport report;
  if (!report.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  for (const std::string& line : perceptrond::FormatReport(report)) Check(!line.empty());
  for (const perceptrond::FigureView& figure : perceptrond::ViewFigures(report))
    Check(!figure.name.empty() && !figure.title.empty());
  perceptrond::FormatFigures(report.last_pass());
  perceptrond::DescribeUpdates(report.updates(), report.mistakes());
  for (const perceptrond::Figure& figure : perceptrond::ListFigures(*report.GetDescriptor()))
    perceptrond::ValueOf(report, figure);
}

void CheckJson(std::string_view text) {
  std::string json;
  perceptrond::AppendJsonString(text, &json);
  for (std::string_view rest = json; !rest.empty();) {
    const size_t length = perceptrond::Utf8Length(rest);
    Check(length > 0 &&
          !perceptrond::IsControlCharacter(perceptrond::CodePoint(rest.substr(0, length))));
    rest.remove_prefix(length);
  }
  google::protobuf::StringValue value;
  Check(google::protobuf::util::JsonStringToMessage(json, &value).ok());
  if (perceptrond::IsValidUtf8(text)) Check(value.value() == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    CheckReport(text);
  } else {
    CheckJson(text);
  }
  return 0;
}
