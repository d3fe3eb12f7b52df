#include "client/ctl/convergence.h"

#include "absl/strings/str_cat.h"
#include "client/ctl/output.h"

namespace perceptrond::client {

std::string DescribeReport(const perceptron::v1::Model& model) {
  std::string text;
  for (const std::string& line : ReportInWords(model))
    absl::StrAppend(&text, "  ", PrintableInLine(line), "\n");
  return text;
}

}  // namespace perceptrond::client
