#include "absl/strings/str_cat.h"
#include "perceptron/v1/backup_service.pb.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/services/services.h"
#include "server/sessions/convert.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

absl::Status CreateBackup(Store& store, const v1::CreateBackupRequest& request,
                          v1::Backup& response) {
  if (request.keep() < 0) {
    return InvalidField("INVALID_FIELD", "keep",
                        absl::StrCat(request.keep(), " is negative; how many backups stay"));
  }
  const absl::StatusOr<Backup> backup = store.CreateBackup(static_cast<uint32_t>(request.keep()));
  if (!backup.ok()) return backup.status();
  response = ToProto(*backup);
  return absl::OkStatus();
}

absl::Status ListBackups(Store& store, const v1::ListBackupsRequest& /*request*/,
                         v1::ListBackupsResponse& response) {
  const absl::StatusOr<std::vector<Backup>> backups = store.ListBackups();
  if (!backups.ok()) return backups.status();
  for (const Backup& backup : *backups) *response.add_backups() = ToProto(backup);
  return absl::OkStatus();
}

}  // namespace

::perceptron::v1::Backup ToProto(const Backup& backup) {
  v1::Backup message;
  message.set_name(absl::StrCat("backups/", backup.number));
  message.set_damaged(backup.damaged);
  if (backup.damaged) return message;
  message.mutable_create_time()->set_seconds(absl::ToUnixSeconds(backup.time));
  message.set_size_bytes(static_cast<int64_t>(backup.bytes));
  message.set_sequence(static_cast<int64_t>(backup.sequence));
  return message;
}

void AddBackupService(Router& router, const Backend& backend) {
  const UnaryMethods unary(backend);
  router.AddService("perceptron.v1.BackupService",
                    {{"CreateBackup", unary(CreateBackup, IsLarge<v1::CreateBackupRequest>)},
                     {"ListBackups", unary(ListBackups, IsManagement<v1::ListBackupsRequest>)}});
}

}  // namespace perceptrond
