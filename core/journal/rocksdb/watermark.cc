#include "core/journal/rocksdb/watermark.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/journal/rocksdb/data_directory.h"

namespace perceptrond {
namespace {

constexpr char kName[] = "WATERMARK";
constexpr char kTitle[] = "perceptrond-watermark-1";
// A slot is a disk's sector, which is written as a whole.
constexpr size_t kSlotBytes = 512;

uint64_t Checksum(absl::string_view text) {
  return crc32(0, reinterpret_cast<const unsigned char*>(text.data()),
               static_cast<unsigned>(text.size()));
}

// One slot of the file: words that an operator can read, their checksum, and blanks.
std::string ToText(const Watermark& mark) {
  std::string text = absl::StrCat(kTitle, " id ", mark.id, " written ", mark.written, " synced ",
                                  mark.synced, " boot ", mark.boot_id.empty() ? "-" : mark.boot_id,
                                  " closed ", mark.closed ? 1 : 0, " log_bytes ", mark.log_bytes,
                                  " unsynced_updates ", mark.unsynced_updates ? 1 : 0, " index ",
                                  mark.index.number, " index_bytes ", mark.index.bytes);
  absl::StrAppend(&text, " crc ", Checksum(text));
  text.resize(kSlotBytes - 1, ' ');
  return text + "\n";
}

// Of a file MANIFEST-number; 0: it is another one.
uint64_t NumberOfIndex(absl::string_view file) {
  uint64_t number = 0;
  absl::ConsumePrefix(&file, "/");
  return absl::ConsumePrefix(&file, "MANIFEST-") && absl::SimpleAtoi(file, &number) ? number : 0;
}

std::optional<Watermark> FromText(absl::string_view text) {
  const size_t end = text.rfind(" crc ");
  if (end == absl::string_view::npos) return std::nullopt;
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipWhitespace());
  Watermark mark;
  uint64_t checksum = 0;
  // Earlier servers did not note the index.
  const bool has_index = words.size() == 21;
  if ((!has_index && words.size() != 17) || words[0] != kTitle ||
      !absl::SimpleAtoi(words[4], &mark.written) || !absl::SimpleAtoi(words[6], &mark.synced) ||
      !absl::SimpleAtoi(words[12], &mark.log_bytes) ||
      (has_index && (!absl::SimpleAtoi(words[16], &mark.index.number) ||
                     !absl::SimpleAtoi(words[18], &mark.index.bytes))) ||
      !absl::SimpleAtoi(words.back(), &checksum) || checksum != Checksum(text.substr(0, end)))
    return std::nullopt;
  mark.id = std::string(words[2]);
  if (words[8] != "-") mark.boot_id = std::string(words[8]);
  mark.closed = words[10] == "1";
  mark.unsynced_updates = words[14] == "1";
  return mark;
}

}  // namespace

IndexEnd IndexEnd::Of(rocksdb::DB& db) {
  std::vector<std::string> files;
  IndexEnd end;
  if (!db.GetLiveFiles(files, &end.bytes, /*flush_memtable=*/false).ok()) return {};
  for (const std::string& file : files)
    if (const uint64_t number = NumberOfIndex(file); number > 0) end.number = number;
  return end;
}

IndexEnd IndexEnd::In(rocksdb::Env* env, const std::string& directory) {
  std::string name;
  IndexEnd end;
  if (!rocksdb::ReadFileToString(env, directory + "/CURRENT", &name).ok()) return {};
  const absl::string_view file = absl::StripTrailingAsciiWhitespace(name);
  end.number = NumberOfIndex(file);
  if (!env->GetFileSize(absl::StrCat(directory, "/", file), &end.bytes).ok()) return {};
  return end;
}

std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

absl::StatusOr<std::optional<Watermark>> WatermarkFile::Read(rocksdb::Env* env,
                                                             const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kName);
  if (env->FileExists(path).IsNotFound()) return std::nullopt;
  std::unique_ptr<rocksdb::SequentialFile> file;
  rocksdb::Status status = env->NewSequentialFile(path, &file, rocksdb::EnvOptions());
  std::array<char, 2 * kSlotBytes> slots;
  rocksdb::Slice text;
  if (status.ok()) status = file->Read(slots.size(), &text, slots.data());
  if (!status.ok())
    return absl::UnavailableError(absl::StrCat("cannot read ", path, ": ", status.ToString()));
  std::optional<Watermark> latest;
  for (size_t at = 0; at < text.size(); at += kSlotBytes) {
    const std::optional<Watermark> mark =
        FromText(absl::string_view(text.data(), text.size()).substr(at, kSlotBytes));
    if (!mark.has_value()) continue;
    const auto later = [](const Watermark& a, const Watermark& b) {
      return std::tie(a.written, a.synced, a.index, a.unsynced_updates, a.closed) <
             std::tie(b.written, b.synced, b.index, b.unsynced_updates, b.closed);
    };
    if (!latest.has_value() || later(*latest, *mark)) latest = mark;
  }
  return latest;
}

absl::StatusOr<std::unique_ptr<WatermarkFile>> WatermarkFile::Create(rocksdb::Env* env,
                                                                     const std::string& directory,
                                                                     const Watermark& watermark) {
  const std::string text = ToText(watermark);
  if (absl::Status status = WriteWholeFile(env, directory, kName, text + text); !status.ok())
    return status;
  const std::string path = absl::StrCat(directory, "/", kName);
  std::unique_ptr<rocksdb::RandomRWFile> file;
  if (const rocksdb::Status status = env->NewRandomRWFile(path, &file, rocksdb::EnvOptions());
      !status.ok())
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", status.ToString()));
  return std::unique_ptr<WatermarkFile>(new WatermarkFile(std::move(file), watermark));
}

WatermarkFile::WatermarkFile(std::unique_ptr<rocksdb::RandomRWFile> file, Watermark watermark)
    : file_(std::move(file)), watermark_(std::move(watermark)) {}

WatermarkFile::~WatermarkFile() = default;

void WatermarkFile::Advance(uint64_t sequence, bool synced) {
  MutexLock lock(&mutex_);
  const bool moves = sequence > watermark_.written || (synced && sequence > watermark_.synced);
  if (!moves) return;
  watermark_.written = std::max(watermark_.written, sequence);
  if (synced) watermark_.synced = std::max(watermark_.synced, sequence);
  Write(synced && std::exchange(log_switched_, false));
}

void WatermarkFile::NoteUnsyncedUpdates() {
  MutexLock lock(&mutex_);
  if (std::exchange(watermark_.unsynced_updates, true)) return;
  Write(/*sync=*/true);
}

void WatermarkFile::NoteIndex(const IndexEnd& index) {
  MutexLock lock(&mutex_);
  if (index <= watermark_.index) return;
  watermark_.index = index;
  Write(/*sync=*/false);
}

void WatermarkFile::NoteLogSwitch() {
  MutexLock lock(&mutex_);
  log_switched_ = true;
}

void WatermarkFile::Close(uint64_t log_bytes) {
  MutexLock lock(&mutex_);
  watermark_.synced = watermark_.written;
  watermark_.closed = true;
  watermark_.log_bytes = log_bytes;
  Write(/*sync=*/true);
}

uint64_t WatermarkFile::written() const {
  MutexLock lock(&mutex_);
  return watermark_.written;
}

void WatermarkFile::Write(bool sync) {
  if (failed_) return;
  const uint64_t slot = writes_++ % 2;
  rocksdb::Status status = file_->Write(slot * kSlotBytes, ToText(watermark_));
  if (status.ok() && sync) status = file_->Sync();
  failed_ = !status.ok();
}

}  // namespace perceptrond
