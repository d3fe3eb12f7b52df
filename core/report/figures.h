// The figures of a report, read from the options of its fields (proto/perceptron/v1/figure.proto):
// what the metrics, the report's text and the status page have in common. Works on any message
// whose fields have these options.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perceptron/v1/figure.pb.h"

namespace perceptrond {

// A figure: where it is in the report, and its definition.
struct Figure {
  // The fields from the report to the figure: the messages that hold it, the figure's own field
  // last. Never empty.
  std::vector<const google::protobuf::FieldDescriptor*> path;
  // The options of the figure's own field. Lives as long as the program.
  const ::perceptron::v1::Figure* options = nullptr;
  // The options' title and metric, after those of the messages that hold the figure.
  std::string title;
  std::string metric;
  // The label of its line of text, and what sets the line apart from others without a label.
  std::string line;
  std::string line_key;

  const google::protobuf::FieldDescriptor& field() const { return *path.back(); }
};

// The figures of a type of report, in the order of declaration; those of a message within it are in
// the message's place. Fields without the option are left out. O(fields).
std::vector<Figure> ListFigures(const google::protobuf::Descriptor& type);

// The message that holds the figure in `report`; null if it is absent.
const google::protobuf::Message* FindHolder(const google::protobuf::Message& report,
                                            const Figure& figure);

// The value of a number, a bool (0 or 1), an enum (its number) or a Timestamp (seconds since the
// Unix epoch). Absent where the figure is not valid in the report, and for a map. O(depth).
std::optional<double> ValueOf(const google::protobuf::Message& report, const Figure& figure);

// The entries of a map from texts to counts, by key. Empty where the figure is not valid.
std::map<std::string, double> EntriesOf(const google::protobuf::Message& report,
                                        const Figure& figure);

// The text of an enum's value, as its option defines it. Empty for a value without the option.
const ::perceptron::v1::ValueText& TextOf(const google::protobuf::EnumValueDescriptor& value);

}  // namespace perceptrond
