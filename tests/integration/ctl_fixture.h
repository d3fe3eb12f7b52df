// perceptronctl against the real server.
#pragma once

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {

class CtlTest : public ServerTest {
 protected:
  explicit CtlTest(std::vector<std::string> flags = {}) : ServerTest(std::move(flags)) {
    setenv("XDG_STATE_HOME", (dir_.path() + "/state").c_str(), 1);
  }

  // With standard error in the output.
  CommandResult Ctl(const std::string& arguments, const std::string& input = "") {
    return RunCommand(std::string(PERCEPTRONCTL_BINARY) + " --server " + server_.address() + " " +
                          arguments + " 2>&1",
                      input);
  }
  // Standard output alone.
  CommandResult CtlOut(const std::string& arguments, const std::string& input = "") {
    return RunCommand(
        std::string(PERCEPTRONCTL_BINARY) + " --server " + server_.address() + " " + arguments,
        input);
  }
  // The same, as JSON of one message.
  template <typename Message>
  Message Json(const std::string& arguments) {
    const CommandResult result = RunCommand(std::string(PERCEPTRONCTL_BINARY) + " --server " +
                                            server_.address() + " " + arguments + " -o json");
    EXPECT_EQ(result.exit_code, 0);
    Message message;
    const auto parsed = google::protobuf::util::JsonStringToMessage(result.out, &message);
    EXPECT_TRUE(parsed.ok()) << result.out;
    return message;
  }
  // An object of perceptronctl's own, which is no message's JSON form.
  static google::protobuf::Struct Object(const std::string& json) {
    google::protobuf::Struct object;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &object).ok()) << json;
    return object;
  }
  static double Number(const google::protobuf::Struct& object, const std::string& key) {
    const auto found = object.fields().find(key);
    EXPECT_TRUE(found != object.fields().end()) << "no " << key;
    if (found == object.fields().end()) return -1;
    // Whole numbers are strings, as in the JSON form of 64-bit ones.
    const google::protobuf::Value& value = found->second;
    return value.has_string_value() ? std::stod(value.string_value()) : value.number_value();
  }
  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << content;
    return path;
  }
  // A data set that is not carried by the project; empty where it is absent.
  static std::string SharedData(const std::string& name) {
    const char* const folder = std::getenv("PERCEPTROND_DATA");
    const std::string path =
        std::string(folder != nullptr ? folder : PERCEPTROND_SHARED_DATA) + "/" + name;
    return std::filesystem::exists(path) ? path : "";
  }
  const std::string and_ = "-1 1:0 2:0\n-1 2:1\n-1 1:1\n+1 1:1 2:1\n";
};

}  // namespace perceptrond::testing
