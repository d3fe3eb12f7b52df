// A model in a file of its own: perceptron/storage/v1/model_file.proto has the format.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/journal/journal.h"
#include "core/model/model_core.h"

namespace perceptrond {

struct ModelFile {
  // With settings alone.
  storage::ModelHeader header;
  storage::Snapshot state;
  CommittedState committed;
};

// The file in pieces, which appended are the whole: so that each can be freed once it is sent.
using ModelFilePieces = std::deque<std::string>;
inline constexpr size_t kModelFilePieceBytes = 256 << 10;

// Makes the file, in pieces of at most kModelFilePieceBytes. RESOURCE_EXHAUSTED (ANSWER_TOO_LARGE).
// O(its size).
absl::StatusOr<ModelFilePieces> WriteModelFile(const storage::ModelHeader& header,
                                               const storage::Snapshot& state,
                                               const CommittedState& committed);

// Reads a file that comes in pieces of any size, and holds what it has read.
//
//   ModelFileReader reader(limits);
//   while (...) status = reader.Add(piece);
//   absl::StatusOr<ModelFile> file = reader.Finish();
//
// Not thread-safe.
class ModelFileReader {
 public:
  // Called with about all that the reader will hold, before it does; its error ends the reading.
  using Hold = std::function<absl::Status(size_t bytes)>;

  explicit ModelFileReader(const ModelLimits& limits, Hold hold = nullptr);
  ~ModelFileReader();
  ModelFileReader(ModelFileReader&&) noexcept;

  // Adds the next bytes. INVALID_ARGUMENT (BAD_MODEL_FILE), saying what is wrong; RESOURCE_EXHAUSTED
  // (MODEL_TOO_LARGE) once the file has more bytes than any model of these limits; Hold's. After an
  // error only the destructor may be called.
  absl::Status Add(absl::string_view bytes);
  // The model's settings; null until they were read. Not checked yet.
  const storage::ModelHeader* header() const;
  // About what it holds in memory. O(1).
  size_t memory_bytes() const;
  // Checks the whole file as a model is checked that is loaded from the journal, and gives it away.
  // Takes the memory of another such model meanwhile. INVALID_ARGUMENT (BAD_MODEL_FILE);
  // RESOURCE_EXHAUSTED. O(its size). To be called once, last.
  absl::StatusOr<ModelFile> Finish();

 private:
  struct Parts;

  std::unique_ptr<Parts> parts_;
};

}  // namespace perceptrond
