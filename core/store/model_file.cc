#include "core/store/model_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/error/error.h"
#include "core/features/byte_hash.h"
#include "core/journal/snapshot_parts.h"
#include "core/model/model.h"
#include "core/model/snapshot.h"
#include "core/settings/unknown_fields.h"
#include "core/store/parsed_bytes.h"
#include "core/vector/name.h"
#include "perceptron/storage/v1/model_file.pb.h"

namespace perceptrond {
namespace model_file_internal {

// The checksum of bytes that come one after the other.
class FileDigest {
 public:
  void Add(absl::string_view bytes) {
    low_.Add(bytes);
    high_.Add(bytes);
  }
  storage::ModelFileEnd End() const {
    storage::ModelFileEnd end;
    end.set_digest_low(low_.Value());
    end.set_digest_high(high_.Value());
    return end;
  }

 private:
  ByteHash low_{0};
  ByteHash high_{1};
};

}  // namespace model_file_internal

namespace {

using model_file_internal::FileDigest;

constexpr absl::string_view kFirstLine = "perceptrond model 1\n";
// What the number of the format follows.
constexpr absl::string_view kBeforeNumber = "perceptrond model ";
// A frame is about as large, besides what cannot be cut.
constexpr size_t kFrameBytes = 8 << 20;
constexpr size_t kMostVarintBytes = 5;
// A file has at most this many times the bytes that its model's weights and names may take, for the
// stored examples, and this many for the rest.
constexpr size_t kFileFactor = 2;
constexpr size_t kRestBytes = 64 << 20;

// No count comes so far, and those that follow it still fit an int64.
constexpr uint64_t kMostCount = uint64_t{1} << 62;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

absl::Status BadFile(absl::string_view why) {
  return InvalidField("BAD_MODEL_FILE", "piece",
                      absl::StrCat(why, "; send a file that perceptronctl export has made"));
}

absl::Status NewerFile() {
  return InvalidField("BAD_MODEL_FILE", "piece",
                      "it is a file of a newer server, which this one cannot read: import it into "
                      "a server of that version");
}

absl::Status TooLarge(size_t most) {
  return MakeError(absl::StatusCode::kResourceExhausted, "MODEL_TOO_LARGE",
                   absl::StrCat("the file has more than ", most >> 20,
                                " MiB, more than a model may have here: "
                                "raise the server's --memory-budget"),
                   {{"max_bytes", absl::StrCat(most)}});
}

// True if the whole numbers of a message, and of those in it, are from 0 to kMostCount; hashes, which
// are fixed64, may be any. O(messages).
bool HasSoundCounts(const Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  return std::all_of(fields.begin(), fields.end(), [&](const FieldDescriptor* field) {
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (is_message && field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        if (!HasSoundCounts(reflection.GetRepeatedMessage(message, field, i))) return false;
      }
      return true;
    }
    if (is_message) return HasSoundCounts(reflection.GetMessage(message, field));
    if (field->is_repeated()) return true;
    if (field->type() == FieldDescriptor::TYPE_UINT64)
      return reflection.GetUInt64(message, field) <= kMostCount;
    if (field->type() == FieldDescriptor::TYPE_INT64)
      return static_cast<uint64_t>(reflection.GetInt64(message, field)) <= kMostCount;
    return true;
  });
}

// Makes the pieces of a file.
class PieceWriter {
 public:
  absl::Status AddFrame(const storage::ModelFileFrame& frame) {
    std::string bytes;
    if (frame.ByteSizeLong() > INT32_MAX || !frame.SerializeToString(&bytes))
      return absl::ResourceExhaustedError("a part of the model is larger than a message may be");
    uint8_t size[kMostVarintBytes];
    const uint8_t* const end =
        CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(bytes.size()), size);
    Add({reinterpret_cast<const char*>(size), static_cast<size_t>(end - size)});
    Add(bytes);
    return absl::OkStatus();
  }
  void Add(absl::string_view bytes) {
    digest_.Add(bytes);
    while (!bytes.empty()) {
      if (pieces_.empty() || pieces_.back().size() == kModelFilePieceBytes) pieces_.emplace_back();
      std::string& last = pieces_.back();
      const absl::string_view part = bytes.substr(0, kModelFilePieceBytes - last.size());
      last.append(part.data(), part.size());
      bytes.remove_prefix(part.size());
    }
  }
  const FileDigest& digest() const { return digest_; }
  ModelFilePieces TakePieces() { return std::move(pieces_); }

 private:
  FileDigest digest_;
  ModelFilePieces pieces_;
};

// The model of a file, as if a journal had it. The file's state is moved out.
class FileModel final : public StoredModel {
 public:
  explicit FileModel(ModelFile& file) : file_(file) {}

  const CommittedState& committed() const override { return file_.committed; }
  absl::StatusOr<std::optional<storage::Snapshot>> TakeSnapshot() override {
    return std::move(file_.state);
  }
  absl::Status Replay(uint64_t /*after_revision*/, const ReplayCallback& /*replay*/) override {
    return absl::OkStatus();
  }

 private:
  ModelFile& file_;
};

// Adds a frame's content. `before`: the checksum of all bytes before it. False if it is at the end.
absl::StatusOr<bool> TakeFrame(storage::ModelFileFrame frame, const FileDigest& before,
                               ModelFile& file) {
  switch (frame.frame_case()) {
    case storage::ModelFileFrame::kHead:
      *file.header.mutable_model() = std::move(*frame.mutable_head()->mutable_model());
      file.header.set_composition_depth(frame.head().composition_depth());
      file.header.set_composition_models(frame.head().composition_models());
      return true;
    case storage::ModelFileFrame::kCounters:
      file.committed.counters = std::move(*frame.mutable_counters());
      return true;
    case storage::ModelFileFrame::kPosition:
      if (frame.position().id().empty() || frame.position().id().size() > kMaxIdBytes)
        return BadFile("a producer has no such id");
      file.committed.positions.push_back(std::move(*frame.mutable_position()));
      return true;
    case storage::ModelFileFrame::kState:
      if (!AppendPart(std::move(*frame.mutable_state()), file.state).ok())
        return BadFile("a part of its state is wrong");
      return true;
    case storage::ModelFileFrame::kEnd:
      if (before.End().SerializeAsString() != frame.end().SerializeAsString())
        return BadFile("it is damaged: its checksum is another");
      return false;
    case storage::ModelFileFrame::FRAME_NOT_SET:
      break;
  }
  return BadFile("it is damaged: a part is empty");
}

}  // namespace

absl::StatusOr<ModelFilePieces> WriteModelFile(const storage::ModelHeader& header,
                                               const storage::Snapshot& state,
                                               const CommittedState& committed) {
  PieceWriter writer;
  writer.Add(kFirstLine);
  storage::ModelFileFrame frame;
  storage::ModelFileHead& head = *frame.mutable_head();
  *head.mutable_model() = header.model();
  head.set_composition_depth(header.composition_depth());
  head.set_composition_models(header.composition_models());
  absl::Status status = writer.AddFrame(frame);
  *frame.mutable_counters() = committed.counters;
  if (status.ok()) status = writer.AddFrame(frame);
  for (const storage::ProducerPosition& position : committed.positions) {
    *frame.mutable_position() = position;
    if (status.ok()) status = writer.AddFrame(frame);
  }
  const auto append = [&](const storage::Snapshot& part) {
    *frame.mutable_state() = part;
    return writer.AddFrame(frame);
  };
  if (status.ok()) status = ForEachPart(state, kFrameBytes, append);
  *frame.mutable_end() = writer.digest().End();
  if (status.ok()) status = writer.AddFrame(frame);
  if (!status.ok()) return WithReason(status, "ANSWER_TOO_LARGE");
  return writer.TakePieces();
}

struct ModelFileReader::Parts {
  Parts(const ModelLimits& model_limits, Hold before)
      : limits(model_limits),
        hold(std::move(before)),
        most(limits.max_model_bytes > std::numeric_limits<size_t>::max() / (2 * kFileFactor)
                 ? std::numeric_limits<size_t>::max()
                 : kFileFactor * limits.max_model_bytes + kRestBytes) {}

  // Takes the first line, if it is there.
  absl::Status TakeFirstLine();
  // Takes the next frame out of `unread` from `at` on. False if it is not whole yet.
  absl::StatusOr<bool> TakeNext(size_t& at);

  // Whether there is memory for a frame.
  absl::Status HoldFrame(absl::string_view frame) const {
    if (hold == nullptr) return absl::OkStatus();
    google::protobuf::io::CodedInputStream bytes(reinterpret_cast<const uint8_t*>(frame.data()),
                                                 static_cast<int>(frame.size()));
    return hold(read_bytes + unread.capacity() +
                ParsedBytes(*storage::ModelFileFrame::descriptor(), bytes));
  }

  const ModelLimits limits;
  const Hold hold;
  const size_t most;
  ModelFile file;
  // Of the bytes before `unread`.
  FileDigest digest;
  // The begin of a frame.
  std::string unread;
  // Of all bytes, and what was read of them takes.
  size_t total = 0;
  size_t read_bytes = 0;
  bool begun = false;
  bool has_header = false;
  bool ended = false;
};

ModelFileReader::ModelFileReader(const ModelLimits& limits, Hold hold)
    : parts_(std::make_unique<Parts>(limits, std::move(hold))) {}
ModelFileReader::~ModelFileReader() = default;
ModelFileReader::ModelFileReader(ModelFileReader&&) noexcept = default;

absl::Status ModelFileReader::Parts::TakeFirstLine() {
  absl::string_view line = absl::string_view(unread).substr(0, kFirstLine.size());
  if (!absl::StartsWith(kFirstLine, line)) {
    const bool is_model =
        absl::ConsumePrefix(&line, kBeforeNumber) && !line.empty() && absl::ascii_isdigit(line[0]);
    return is_model ? NewerFile() : BadFile("it is no file of a model");
  }
  if (line.size() < kFirstLine.size()) return absl::OkStatus();
  digest.Add(line);
  unread.erase(0, line.size());
  begun = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> ModelFileReader::Parts::TakeNext(size_t& at) {
  const absl::string_view rest = absl::string_view(unread).substr(at);
  if (rest.empty()) return false;
  if (ended) return BadFile("something follows its end");
  CodedInputStream in(reinterpret_cast<const uint8_t*>(rest.data()),
                      static_cast<int>(std::min(rest.size(), kMostVarintBytes)));
  uint32_t size = 0;
  if (!in.ReadVarint32(&size)) {
    if (rest.size() < kMostVarintBytes) return false;
    return BadFile("it is damaged: a part has no size");
  }
  const auto begin = static_cast<size_t>(in.CurrentPosition());
  if (size > INT32_MAX) return BadFile("it is damaged: a part is too large");
  if (size > rest.size() - begin) return false;
  if (absl::Status status = HoldFrame(rest.substr(begin, size)); !status.ok()) return status;
  storage::ModelFileFrame frame;
  if (!frame.ParseFromArray(rest.data() + begin, static_cast<int>(size)))
    return BadFile("it is damaged: a part does not parse");
  if (FindUnknownField(frame).has_value()) return NewerFile();
  // Settings have numbers of any size.
  if (!frame.has_head() && !HasSoundCounts(frame)) return BadFile("a count is out of range");
  has_header |= frame.has_head();
  read_bytes += frame.SpaceUsedLong();
  const absl::StatusOr<bool> more = TakeFrame(std::move(frame), digest, file);
  if (!more.ok()) return more.status();
  ended = !*more;
  digest.Add(rest.substr(0, begin + size));
  at += begin + size;
  return true;
}

absl::Status ModelFileReader::Add(absl::string_view bytes) {
  parts_->total += bytes.size();
  if (parts_->total > parts_->most) return TooLarge(parts_->most);
  parts_->unread.append(bytes.data(), bytes.size());
  if (!parts_->begun) {
    if (absl::Status status = parts_->TakeFirstLine(); !status.ok() || !parts_->begun)
      return status;
  }
  size_t at = 0;
  while (true) {
    const absl::StatusOr<bool> taken = parts_->TakeNext(at);
    if (!taken.ok()) return taken.status();
    if (!*taken) break;
  }
  parts_->unread.erase(0, at);
  return absl::OkStatus();
}

const storage::ModelHeader* ModelFileReader::header() const {
  return parts_->has_header ? &parts_->file.header : nullptr;
}

size_t ModelFileReader::memory_bytes() const {
  return parts_->read_bytes + parts_->unread.capacity();
}

absl::StatusOr<ModelFile> ModelFileReader::Finish() {
  if (!parts_->begun && !parts_->unread.empty()) return BadFile("it is no file of a model");
  if (!parts_->ended) return BadFile("it ends early");
  parts_->unread = std::string();
  ModelFile& file = parts_->file;
  const google::protobuf::Timestamp time = file.state.time();
  FileModel stored(file);
  // No row is evaluated: components are not asked.
  const auto no_component = [](absl::string_view /*name*/, ComponentAccess /*access*/) {
    return absl::StatusOr<std::shared_ptr<Model>>(absl::NotFoundError("not in memory"));
  };
  const absl::StatusOr<std::shared_ptr<Model>> model =
      RestoreModel(file.header, stored, parts_->limits, no_component);
  if (absl::IsDataLoss(model.status())) return BadFile(model.status().message());
  if (!model.ok()) return model.status();
  // Read back, so that there are never more than two of it.
  file.state = MakeSnapshot(**model);
  *file.state.mutable_time() = time;
  return std::move(file);
}

}  // namespace perceptrond
