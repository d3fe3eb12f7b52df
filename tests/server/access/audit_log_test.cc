// The audit log loses no record that it can write, and keeps nobody waiting for a disk that is full.
#include "server/access/audit_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "core/file/read_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace perceptrond {
namespace {

std::string ReadFile(const std::string& path) {
  return ReadFileUpTo(path, 1 << 20, FileKind::kRegular).value_or("");
}

void Await(const std::string& path, const std::string& text) {
  testing::WaitUntil([&] { return ReadFile(path).find(text) != std::string::npos; });
}

AuditRecord Deletion(const std::string& model) {
  AuditRecord record;
  record.time = absl::FromUnixSeconds(0);
  record.principal = "alice";
  record.peer = "ipv4:127.0.0.1:1";
  record.method = "perceptron.v1.ModelService/DeleteModel";
  record.model = model;
  record.outcome = "OK";
  record.took = absl::Milliseconds(1500);
  return record;
}

TEST(AuditLog, ARecordIsALineOfJsonForItsOwnerAlone) {
  const testing::TempDir dir;
  const std::string path = dir.path() + "/audit";
  {
    auto log = *AuditLog::Open(path);
    log->Record(Deletion("models/a\n\"b"));
  }
  EXPECT_EQ(ReadFile(path),
            R"({"time":"1970-01-01T00:00:00.000Z","level":"info","message":"audit",)"
            R"("principal":"alice","peer":"ipv4:127.0.0.1:1",)"
            R"("method":"perceptron.v1.ModelService/DeleteModel","model":"models/a\n\"b",)"
            R"("outcome":"OK","reason":"","seconds":1.5})"
            "\n");
  struct stat found = {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600);
  EXPECT_FALSE(AuditLog::Open("/nowhere/audit").ok());
}

TEST(AuditLog, ItGoesOnInANewFileAfterARotation) {
  const testing::TempDir dir;
  const std::string path = dir.path() + "/audit";
  auto log = *AuditLog::Open(path);
  log->Record(Deletion("models/before"));
  Await(path, "models/before");
  std::filesystem::rename(path, path + ".1");
  log->Reopen();
  log->Record(Deletion("models/after"));
  Await(path, "models/after");
  EXPECT_EQ(ReadFile(path + ".1").find("models/after"), std::string::npos);
}

// /dev/full fails each write as a full disk does.
TEST(AuditLog, OnAFullDiskRecordsWaitAndThenTheNumberOfThoseDroppedIsRecorded) {
  auto full = AuditLog::Open("/dev/full");
  ASSERT_TRUE(full.ok()) << full.status();
  const std::string model(400, 'm');
  uint64_t recorded = 0;
  for (; (*full)->dropped() == 0 && recorded < 100'000; ++recorded)
    (*full)->Record(Deletion(model));
  EXPECT_LT(recorded, 2 * AuditLog::kMaxWaitingBytes / 400);
  EXPECT_GT(recorded, AuditLog::kMaxWaitingBytes / 1000);
}

}  // namespace
}  // namespace perceptrond
