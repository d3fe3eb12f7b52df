#include "core/journal/rocksdb/notes.h"

#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace perceptrond {
namespace {

// Thread contract: safe for any number of threads, as stdio is.
class Notes final : public rocksdb::Logger {
 public:
  // A null file: nothing is written.
  explicit Notes(std::FILE* file) : Logger(rocksdb::InfoLogLevel::WARN_LEVEL), file_(file) {}
  ~Notes() override {
    if (file_ != nullptr) std::fclose(file_);
  }

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    if (file_ == nullptr) return;
    char text[2048];
    std::vsnprintf(text, sizeof text, format, arguments);
    const std::string line = absl::StrCat(absl::FormatTime(absl::Now()), " ", text, "\n");
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }

 private:
  std::FILE* const file_;
};

}  // namespace

std::shared_ptr<rocksdb::Logger> MakeNotes(const std::string& directory) {
  const std::string path = directory + "/LOG";
  std::error_code error;
  if (std::filesystem::file_size(path, error) > 0 && !error)
    std::filesystem::rename(path, path + ".old", error);
  return std::make_shared<Notes>(std::fopen(path.c_str(), "ae"));
}

std::shared_ptr<rocksdb::Logger> NoNotes() { return std::make_shared<Notes>(nullptr); }

}  // namespace perceptrond
