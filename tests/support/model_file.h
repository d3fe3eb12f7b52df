// A model's file taken apart, and made of parts with the checksum that fits them.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/features/byte_hash.h"
#include "perceptron/storage/v1/model_file.pb.h"

namespace perceptrond::testing {

using ModelFileFrame = ::perceptron::storage::v1::ModelFileFrame;

inline constexpr std::string_view kModelFileTitle = "perceptrond model 1\n";

// All frames but the end of a whole file.
inline std::vector<ModelFileFrame> FramesOf(std::string_view file) {
  file.remove_prefix(kModelFileTitle.size());
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(file.data()),
                                            static_cast<int>(file.size()));
  std::vector<ModelFileFrame> frames;
  ModelFileFrame frame;
  while (google::protobuf::util::ParseDelimitedFromCodedStream(&frame, &in, nullptr) &&
         !frame.has_end()) {
    frames.push_back(frame);
    frame.Clear();
  }
  return frames;
}

// A file of these frames and its end.
inline std::string ModelFileOf(const std::vector<ModelFileFrame>& frames) {
  std::ostringstream file;
  file << kModelFileTitle;
  for (const ModelFileFrame& frame : frames)
    google::protobuf::util::SerializeDelimitedToOstream(frame, &file);
  ModelFileFrame end;
  for (const uint64_t seed : {0, 1}) {
    ByteHash digest(seed);
    digest.Add(file.str());
    seed == 0 ? end.mutable_end()->set_digest_low(digest.Value())
              : end.mutable_end()->set_digest_high(digest.Value());
  }
  google::protobuf::util::SerializeDelimitedToOstream(end, &file);
  return file.str();
}

}  // namespace perceptrond::testing
