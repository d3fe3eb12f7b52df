// A server on one data directory, started with other flags from time to time, and a producer whose
// examples are known.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "perceptron/v1/backup_service.pb.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {

class StorageTest : public ::testing::Test, protected Api {
 protected:
  static constexpr int kExamples = 500;

  std::string data() const { return dir_.path() + "/data"; }
  std::string backups() const { return dir_.path() + "/backups"; }
  void Start(const std::vector<std::string>& flags = {}) { StartOn(data(), flags); }
  void StartOn(const std::string& directory, const std::vector<std::string>& flags = {}) {
    server_ = std::make_unique<ServerProcess>(directory, flags);
    Connect(server_->address());
  }
  v1::Model Create(const std::string& id) { return CreateDense(id, 2); }
  // The producer's i-th example: nearly every one is a mistake.
  static v1::LearnStreamRequest Example(int64_t i) {
    v1::LearnStreamRequest request;
    request.set_first_offset(i);
    *request.add_examples() =
        SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1.0F + static_cast<float>(i % 7)}, {1, 0.5F}});
    return request;
  }
  // Sends examples [from, to), and returns the last result.
  v1::LearnResult SendExamples(RawLearnStream& stream, int64_t from, int64_t to) {
    v1::LearnResult last;
    for (int64_t i = from; i < to; ++i) last = stream.Ask(Example(i));
    EXPECT_EQ(last.acknowledged_offset(), to - 1);
    return last;
  }
  // A stream whose claim is refused.
  grpc::Status ClaimStatus(const std::string& model, const v1::Producer& producer) {
    RawLearnStream stream(*learning_, model);
    *stream.first().mutable_producer() = producer;
    stream.Send(stream.first());
    return stream.Finish();
  }
  // Has the model's producer learn so many examples, and returns the last result.
  v1::LearnResult LearnExamples(const std::string& model, int64_t count) {
    RawLearnStream stream(*learning_, model, "p");
    stream.Open();
    const v1::LearnResult last = SendExamples(stream, 0, count);
    EXPECT_EQ(Outcome(stream.Finish()), "OK");
    return last;
  }
  std::string Metric(const std::string& name) { return testing::Metric(*server_, name); }
  // The log with the most in it.
  static std::filesystem::path Log(const std::string& directory) {
    std::filesystem::path largest;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".log" &&
          (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)))
        largest = entry.path();
    }
    return largest;
  }

  TempDir dir_;
  std::unique_ptr<ServerProcess> server_;
};

}  // namespace perceptrond::testing
