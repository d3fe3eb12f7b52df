// perceptronctl against the real server. transcripts/ has what it prints.
#pragma once

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {

class CtlTest : public ServerTest {
 protected:
  explicit CtlTest(std::vector<std::string> flags = {}) : ServerTest(std::move(flags)) {
    setenv("XDG_STATE_HOME", (dir_.path() + "/state").c_str(), 1);
  }

  std::string Command(const std::string& arguments) const {
    return absl::StrCat(PerceptronctlBinary(), " --server ", server_.address(), " ", arguments);
  }
  // With standard error in the output.
  CommandResult Ctl(const std::string& arguments, const std::string& input = "") const {
    return RunCommand(Command(arguments) + " 2>&1", input);
  }
  // Standard output alone.
  CommandResult CtlOut(const std::string& arguments, const std::string& input = "") const {
    return RunCommand(Command(arguments), input);
  }
  void Expect(int exit_code, const std::string& arguments, const std::string& input = "") const {
    const CommandResult result = Ctl(arguments, input);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << ": " << result.out;
  }
  // The output as the JSON form of a message; objects of perceptronctl's own are Structs.
  template <typename Message>
  static Message Parse(const std::string& json) {
    Message message;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
    return message;
  }
  template <typename Message>
  Message Json(const std::string& arguments, const std::string& input = "",
               int exit_code = 0) const {
    const CommandResult result = CtlOut(arguments + " -o json", input);
    EXPECT_EQ(result.exit_code, exit_code) << arguments;
    return Parse<Message>(result.out);
  }
  google::protobuf::Struct Object(const std::string& arguments, const std::string& input = "",
                                  int exit_code = 0) const {
    return Json<google::protobuf::Struct>(arguments, input, exit_code);
  }
  // A figure; -1 if it is absent. Whole numbers are strings, as in the JSON form of 64-bit ones.
  static double Number(const google::protobuf::Struct& object, const std::string& key) {
    const auto found = object.fields().find(key);
    if (found == object.fields().end()) return -1;
    const google::protobuf::Value& value = found->second;
    return value.has_string_value() ? std::stod(value.string_value()) : value.number_value();
  }
  std::string Weights(const std::string& name) { return Get(name).weights().SerializeAsString(); }
  uint64_t Examples(const std::string& name) {
    return Get(name, v1::MODEL_VIEW_BASIC).report().examples();
  }
  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << content;
    return path;
  }

  const std::string and_ = "-1 1:0 2:0\n-1 2:1\n-1 1:1\n+1 1:1 2:1\n";
  const std::string svmlight_ = " - --format svmlight --index-base 1 ";
};

}  // namespace perceptrond::testing
