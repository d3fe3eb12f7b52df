#include "client/format/decompress.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace perceptrond::client {
namespace {

constexpr size_t kChunkBytes = 128 << 10;

// A decoder of one format. Threads: one at a time.
class Decoder {
 public:
  virtual ~Decoder() = default;
  struct Step {
    size_t consumed = 0;
    size_t produced = 0;
  };
  // Decodes from `input` into `output`. DATA_LOSS: what is wrong with the data.
  virtual absl::StatusOr<Step> Decode(std::string_view input, char* output, size_t size) = 0;
  // The data may end after what was consumed.
  virtual bool AtEnd() const = 0;
};

class GzipDecoder final : public Decoder {
 public:
  // The largest window, and gzip's header.
  GzipDecoder() { ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK; }
  ~GzipDecoder() override {
    if (ready_) inflateEnd(&stream_);
  }

  absl::StatusOr<Step> Decode(std::string_view input, char* output, size_t size) override {
    if (!ready_) return absl::ResourceExhaustedError("there is no memory to decompress it");
    // gzip fills a tape's last block with zeros after the last member.
    if (ended_ && input.front() == '\0') return Step{input.size(), 0};
    if (ended_) inflateReset(&stream_);
    ended_ = false;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    stream_.next_out = reinterpret_cast<Bytef*>(output);
    stream_.avail_out = static_cast<uInt>(size);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    ended_ = result == Z_STREAM_END;
    // Z_BUF_ERROR: it needs more input.
    if (!ended_ && result != Z_OK && result != Z_BUF_ERROR) {
      return absl::DataLossError(stream_.msg != nullptr ? stream_.msg
                                                        : absl::StrCat("zlib's error ", result));
    }
    return Step{input.size() - stream_.avail_in, size - stream_.avail_out};
  }
  bool AtEnd() const override { return ended_; }

 private:
  z_stream stream_ = {};
  bool ready_ = false;
  bool ended_ = false;
};

class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() : stream_(ZSTD_createDStream()) {}
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }

  absl::StatusOr<Step> Decode(std::string_view input, char* output, size_t size) override {
    if (stream_ == nullptr)
      return absl::ResourceExhaustedError("there is no memory to decompress it");
    ZSTD_inBuffer in = {input.data(), input.size(), 0};
    ZSTD_outBuffer out = {output, size, 0};
    const size_t result = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge) {
      return absl::ResourceExhaustedError(
          "its zstd window needs more than 128 MiB of memory; decompress it into a pipe with "
          "zstdcat --long=31");
    }
    if (ZSTD_isError(result) != 0) return absl::DataLossError(ZSTD_getErrorName(result));
    // 0 after a whole frame; else a hint of how much is missing. A call without effect keeps it.
    if (in.pos > 0 || out.pos > 0) ended_ = result == 0;
    return Step{in.pos, out.pos};
  }
  bool AtEnd() const override { return ended_; }

 private:
  ZSTD_DStream* const stream_;
  bool ended_ = false;
};

// The magic numbers of the formats that are decoded here.
constexpr std::string_view kMagicNumbers[] = {"\x1F\x8B", "\x28\xB5\x2F\xFD"};

class Source final : public MaybeCompressedSource {
 public:
  Source(std::string name, std::unique_ptr<ByteSource> source)
      : name_(std::move(name)), source_(std::move(source)) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    if (!detected_) {
      if (absl::Status status = Detect(); !status.ok()) return status;
    }
    if (decoder_ != nullptr) return ReadDecoded(buffer, size);
    // The bytes that were read to detect the format, then the source itself.
    if (begin_ == end_) return source_->Read(buffer, size);
    const size_t count = std::min(size, end_ - begin_);
    std::memcpy(buffer, input_.data() + begin_, count);
    begin_ += count;
    return count;
  }

  std::optional<uint64_t> compressed_bytes() const override {
    if (decoder_ == nullptr) return std::nullopt;
    return read_ - (end_ - begin_);
  }

 private:
  // Reads on only while what was read may be the start of a magic number: somebody may be typing.
  absl::Status Detect() {
    input_.resize(kChunkBytes);
    std::string_view start;
    while (std::any_of(std::begin(kMagicNumbers), std::end(kMagicNumbers),
                       [&](std::string_view magic) {
                         return start.size() < magic.size() && magic.starts_with(start);
                       })) {
      absl::StatusOr<size_t> count = Fill();
      if (!count.ok()) return count.status();
      if (*count == 0) break;
      start = std::string_view(input_.data(), end_);
    }
    detected_ = true;
    compression_ = DetectCompression(start);
    if (compression_ == nullptr || !compression_->is_read) return absl::OkStatus();
    if (start.starts_with(kMagicNumbers[0])) {
      decoder_ = std::make_unique<GzipDecoder>();
    } else {
      decoder_ = std::make_unique<ZstdDecoder>();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> ReadDecoded(char* buffer, size_t size) {
    while (true) {
      // A decoder may hold output back until it is called again, so it is called without input too,
      // except where a member or frame has ended.
      if (begin_ < end_ || !decoder_->AtEnd()) {
        const std::string_view input(input_.data() + begin_, end_ - begin_);
        const absl::StatusOr<Decoder::Step> step = decoder_->Decode(input, buffer, size);
        if (!step.ok()) return Damaged(step.status());
        begin_ += step->consumed;
        if (step->produced > 0) return step->produced;
        if (begin_ < end_) continue;
      }
      begin_ = end_ = 0;
      absl::StatusOr<size_t> count = Fill();
      if (!count.ok()) return count;
      if (*count > 0) continue;
      return decoder_->AtEnd() ? absl::StatusOr<size_t>(0) : Truncated();
    }
  }

  // Reads more of the source after what is in input_.
  absl::StatusOr<size_t> Fill() {
    absl::StatusOr<size_t> count = source_->Read(input_.data() + end_, input_.size() - end_);
    if (!count.ok()) return count;
    end_ += *count;
    read_ += *count;
    return count;
  }

  absl::Status Truncated() const {
    return absl::DataLossError(absl::StrCat(name_, " is truncated: it ends after ", read_,
                                            " bytes, in the middle of its ", compression_->name,
                                            " data; copy it again"));
  }

  absl::Status Damaged(const absl::Status& status) const {
    if (!absl::IsDataLoss(status))
      return absl::Status(status.code(), absl::StrCat(name_, ": ", std::string(status.message())));
    return absl::DataLossError(absl::StrCat(name_, " is damaged: its ", compression_->name,
                                            " data are wrong (", std::string(status.message()),
                                            "); copy it again"));
  }

  const std::string name_;
  const std::unique_ptr<ByteSource> source_;
  bool detected_ = false;
  const Compression* compression_ = nullptr;
  std::unique_ptr<Decoder> decoder_;
  // Bytes of the source that were not used yet: from begin_ to end_.
  std::vector<char> input_;
  size_t begin_ = 0;
  size_t end_ = 0;
  // Bytes read from the source.
  uint64_t read_ = 0;
};

}  // namespace

std::unique_ptr<MaybeCompressedSource> Decompress(std::string name,
                                                  std::unique_ptr<ByteSource> source) {
  return std::make_unique<Source>(std::move(name), std::move(source));
}

}  // namespace perceptrond::client
