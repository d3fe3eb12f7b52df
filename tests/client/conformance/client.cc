// The C++ client as window_test.py drives it: reads a job from each line of standard input, and prints its outcome as a line.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/error.h"
#include "client/learn_stream.h"

namespace perceptrond::client {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

Row ReadRow(const Value& given) {
  const auto& fields = given.struct_value().fields();
  Row row;
  row.label = static_cast<int>(fields.at("label").number_value());
  for (const Value& pair : fields.at("features").list_value().values()) {
    const Value& key = pair.list_value().values(0);
    if (key.has_string_value()) {
      row.kind = RowKind::kNamed;
      row.AddName(key.string_value());
    } else {
      row.indices.push_back(static_cast<uint32_t>(key.number_value()));
    }
    row.values.push_back(static_cast<float>(pair.list_value().values(1).number_value()));
  }
  return row;
}

absl::Status Do(const Value& action, LearnStream* stream, std::vector<std::string>* passes) {
  if (action.string_value() == "finish") return stream->Finish().status();
  if (action.string_value() == "mark") {
    const auto pass = stream->MarkPass();
    if (pass.ok()) passes->push_back(absl::StrCat("[", pass->number(), ",", pass->examples(), "]"));
    return pass.status();
  }
  for (const Value& row : action.list_value().values()) {
    if (absl::Status status = stream->Push(ReadRow(row)); !status.ok()) return status;
  }
  return stream->Flush();
}

std::string Run(const Struct& job) {
  const auto& fields = job.fields();
  LearnOptions options;
  options.producer_id = fields.at("producer").string_value();
  options.window_messages = static_cast<size_t>(fields.at("window").number_value());
  options.retry.initial_backoff = absl::Milliseconds(1);
  options.retry.give_up_after = absl::Seconds(fields.at("giveUpAfter").number_value());
  std::atomic<int> reconnects = 0;
  options.on_reconnect = [&](const absl::Status&) { ++reconnects; };

  std::vector<std::string> passes;
  std::string totals = "null";
  auto stream = LearnStream::Open(MakeConnection(fields.at("server").string_value()),
                                  fields.at("model").string_value(), std::move(options));
  absl::Status status = stream.status();
  if (stream.ok()) {
    for (const Value& action : fields.at("actions").list_value().values()) {
      if (status.ok()) status = Do(action, stream->get(), &passes);
    }
    const LearnTotals sums = (*stream)->totals();
    totals = absl::StrCat("[", sums.examples, ",", sums.mistakes, ",", sums.updates, ",",
                          sums.duplicates, ",", sums.row_errors, ",", sums.lost_answers, "]");
  }
  const std::string error = status.ok()
                                ? "null"
                                : absl::StrCat("[\"", absl::StatusCodeToString(status.code()),
                                               "\",\"", ErrorReason(status), "\"]");
  return absl::StrCat("{\"error\":", error, ",\"reconnects\":", reconnects.load(), ",\"passes\":[",
                      absl::StrJoin(passes, ","), "],\"totals\":", totals, "}");
}

}  // namespace
}  // namespace perceptrond::client

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    google::protobuf::Struct job;
    if (!google::protobuf::util::JsonStringToMessage(line, &job).ok()) return 2;
    std::cout << perceptrond::client::Run(job) << std::endl;
  }
}
