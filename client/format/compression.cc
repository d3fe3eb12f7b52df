#include "client/format/compression.h"

namespace perceptrond::client {

const Compression* DetectCompression(std::string_view start) {
  static constexpr Compression kGzip = {"gzip", "zcat"};
  static constexpr Compression kZstd = {"zstd", "zstdcat"};
  static constexpr Compression kXz = {"xz", "xzcat"};
  static constexpr Compression kBzip2 = {"bzip2", "bzcat"};
  if (start.starts_with("\x1F\x8B")) return &kGzip;
  if (start.starts_with("\x28\xB5\x2F\xFD")) return &kZstd;
  if (start.starts_with("\xFD"
                        "7zXZ")) {
    return &kXz;
  }
  // "BZh" alone could begin a text: the level and the first block's own magic follow.
  if (start.starts_with("BZh") && start.substr(4).starts_with("1AY&SY")) return &kBzip2;
  return nullptr;
}

}  // namespace perceptrond::client
