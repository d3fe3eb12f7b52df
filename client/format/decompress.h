// Sources of bytes that decompress gzip and zstd, recognized by their first bytes whatever the
// file's name is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/format/reader.h"

namespace perceptrond::client {

// A source that may be compressed.
class MaybeCompressedSource : public ByteSource {
 public:
  // Bytes read from the source below, to tell how much of a compressed file was read; absent if it
  // is not compressed, or not known yet. Threads: that of Read().
  virtual std::optional<uint64_t> compressed_bytes() const = 0;
};

// Returns a source of the decompressed bytes of *source if these begin as gzip (several members
// after one another are one file, as for zcat) or zstd (likewise with frames), else of the bytes as
// they are. Reads ahead no further than it takes to tell. `name`: the file's name in error messages.
// Read() also returns DATA_LOSS: the file ends within the compressed data, or they are damaged; the
// bytes before were returned. Memory: 0.2 MiB and what the format's window takes, for zstd at most
// 128 MiB.
std::unique_ptr<MaybeCompressedSource> Decompress(std::string name,
                                                  std::unique_ptr<ByteSource> source);

}  // namespace perceptrond::client
