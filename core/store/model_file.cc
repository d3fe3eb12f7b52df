#include "core/store/model_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/features/names.h"
#include "core/journal/snapshot_parts.h"
#include "core/model/model.h"
#include "perceptron/storage/v1/model_file.pb.h"

namespace perceptrond {
namespace {

constexpr absl::string_view kFirstLine = "perceptrond model 1\n";
// A frame is about as large, besides what cannot be cut.
constexpr size_t kFrameBytes = 8 << 20;

absl::Status BadFile(absl::string_view why) {
  return InvalidField("BAD_MODEL_FILE", "file",
                      absl::StrCat(why, "; send a file that perceptronctl export has made"));
}

void SetDigest(absl::string_view bytes, storage::ModelFileEnd& end) {
  end.set_digest_low(HashBytes(bytes.data(), bytes.size(), 0));
  end.set_digest_high(HashBytes(bytes.data(), bytes.size(), 1));
}

absl::Status AppendFrame(const storage::ModelFileFrame& frame, std::string& file) {
  std::string bytes;
  if (frame.ByteSizeLong() > INT32_MAX || !frame.SerializeToString(&bytes))
    return absl::ResourceExhaustedError("a part of the model is larger than a message may be");
  {
    google::protobuf::io::StringOutputStream stream(&file);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteVarint32(static_cast<uint32_t>(bytes.size()));
  }
  file += bytes;
  return absl::OkStatus();
}

// The model of a file, as if a journal had it.
class FileModel final : public StoredModel {
 public:
  explicit FileModel(const ModelFile& file) : file_(file) {}

  const CommittedState& committed() const override { return file_.committed; }
  absl::StatusOr<std::optional<storage::Snapshot>> TakeSnapshot() override { return file_.state; }
  absl::Status Replay(uint64_t /*after_revision*/, const ReplayCallback& /*replay*/) override {
    return absl::OkStatus();
  }

 private:
  const ModelFile& file_;
};

// Adds a frame's content. False if it is at the end.
absl::StatusOr<bool> TakeFrame(storage::ModelFileFrame frame, absl::string_view before,
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
      file.committed.positions.push_back(std::move(*frame.mutable_position()));
      return true;
    case storage::ModelFileFrame::kState:
      if (!AppendPart(std::move(*frame.mutable_state()), file.state).ok())
        return BadFile("a part of its state is wrong");
      return true;
    case storage::ModelFileFrame::kEnd: {
      storage::ModelFileEnd digest;
      SetDigest(before, digest);
      if (digest.SerializeAsString() != frame.end().SerializeAsString())
        return BadFile("it is damaged: its checksum is another");
      return false;
    }
    case storage::ModelFileFrame::FRAME_NOT_SET:
      break;
  }
  return BadFile("it has parts that only a newer server knows");
}

absl::StatusOr<ModelFile> ReadFrames(absl::string_view bytes) {
  ModelFile file;
  if (!absl::StartsWith(bytes, kFirstLine)) return BadFile("it is no file of a model");
  size_t at = kFirstLine.size();
  while (true) {
    google::protobuf::io::CodedInputStream in(
        reinterpret_cast<const uint8_t*>(bytes.data() + at),
        static_cast<int>(std::min<size_t>(bytes.size() - at, INT32_MAX)));
    uint32_t size = 0;
    if (!in.ReadVarint32(&size)) return BadFile("it ends early");
    const size_t begin = at + static_cast<size_t>(in.CurrentPosition());
    if (size > bytes.size() - begin) return BadFile("it ends early");
    storage::ModelFileFrame frame;
    if (!frame.ParseFromArray(bytes.data() + begin, static_cast<int>(size)))
      return BadFile("it is damaged: a part does not parse");
    const absl::StatusOr<bool> more = TakeFrame(std::move(frame), bytes.substr(0, at), file);
    if (!more.ok()) return more.status();
    at = begin + size;
    if (!*more) break;
  }
  if (at < bytes.size()) return BadFile("something follows its end");
  return file;
}

}  // namespace

absl::StatusOr<std::string> WriteModelFile(const storage::ModelHeader& header,
                                           const storage::Snapshot& state,
                                           const CommittedState& committed) {
  std::string file(kFirstLine);
  storage::ModelFileFrame frame;
  storage::ModelFileHead& head = *frame.mutable_head();
  *head.mutable_model() = header.model();
  head.set_composition_depth(header.composition_depth());
  head.set_composition_models(header.composition_models());
  absl::Status status = AppendFrame(frame, file);
  *frame.mutable_counters() = committed.counters;
  if (status.ok()) status = AppendFrame(frame, file);
  for (const storage::ProducerPosition& position : committed.positions) {
    *frame.mutable_position() = position;
    if (status.ok()) status = AppendFrame(frame, file);
  }
  const auto append = [&](const storage::Snapshot& part) {
    *frame.mutable_state() = part;
    return AppendFrame(frame, file);
  };
  if (status.ok()) status = ForEachPart(state, kFrameBytes, append);
  SetDigest(file, *frame.mutable_end());
  if (status.ok()) status = AppendFrame(frame, file);
  if (!status.ok()) return WithReason(status, "ANSWER_TOO_LARGE");
  return file;
}

absl::StatusOr<ModelFile> ReadModelFile(absl::string_view bytes, const ModelLimits& limits) {
  absl::StatusOr<ModelFile> file = ReadFrames(bytes);
  if (!file.ok()) return file;
  FileModel stored(*file);
  // No row is evaluated: components are not asked.
  const auto no_component = [](absl::string_view /*name*/, ComponentAccess /*access*/) {
    return absl::StatusOr<std::shared_ptr<Model>>(absl::NotFoundError("not in memory"));
  };
  const absl::StatusOr<std::shared_ptr<Model>> model =
      RestoreModel(file->header, stored, limits, no_component);
  if (model.ok()) return file;
  if (absl::IsDataLoss(model.status())) return BadFile(model.status().message());
  return model.status();
}

}  // namespace perceptrond
