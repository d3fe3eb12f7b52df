#include "core/journal/postgres/connection.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

namespace perceptrond::postgres {
namespace {

// PostgreSQL's numbers of types.
constexpr Oid kBytes = 17;
constexpr Oid kText = 25;
constexpr Oid kArrayOfBytes = 1001;

void AppendInt(std::string& bytes, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
}

// The first line, without the full stop that a caller's sentence may follow.
std::string Clean(absl::string_view message) {
  message = message.substr(0, message.find('\n'));
  return std::string(absl::StripAsciiWhitespace(message));
}

bool StartsWithAny(absl::string_view state, std::initializer_list<const char*> classes) {
  return std::any_of(classes.begin(), classes.end(),
                     [&](const char* one) { return absl::StartsWith(state, one); });
}

}  // namespace

void Parameters::Add(Oid type, std::string value) {
  types_.push_back(type);
  values_.push_back(std::move(value));
}

Parameters& Parameters::AddBytes(absl::string_view bytes) {
  Add(kBytes, std::string(bytes));
  return *this;
}

Parameters& Parameters::AddText(absl::string_view text) {
  Add(kText, std::string(text));
  return *this;
}

Parameters& Parameters::AddArray(const std::vector<absl::string_view>& all) {
  std::string array;
  AppendInt(array, all.empty() ? 0 : 1);  // dimensions
  AppendInt(array, 0);                    // no nulls
  AppendInt(array, kBytes);
  if (!all.empty()) {
    AppendInt(array, static_cast<uint32_t>(all.size()));
    AppendInt(array, 1);  // the first index
  }
  for (const absl::string_view one : all) {
    AppendInt(array, static_cast<uint32_t>(one.size()));
    array.append(one.data(), one.size());
  }
  Add(kArrayOfBytes, std::move(array));
  return *this;
}

Connection::Connection(PGconn* connection, int wake) : connection_(connection), wake_(wake) {
  PQsetNoticeReceiver(connection_, OnNotice, this);
}

Connection::~Connection() { PQfinish(connection_); }

void Connection::OnNotice(void* self, const PGresult* notice) {
  const char* const severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity != nullptr && std::strcmp(severity, "WARNING") == 0)
    static_cast<Connection*>(self)->warned_ = true;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& settings,
                                                             int wake) {
  // The settings come last, since later keys count. The keepalives break a connection whose server has all of a commit and
  // is gone before it answers: the time-out is looked at only when something is sent.
  const char* const keys[] = {"application_name",
                              "connect_timeout",
                              "keepalives_idle",
                              "keepalives_interval",
                              "keepalives_count",
                              "tcp_user_timeout",
                              "target_session_attrs",
                              "client_encoding",
                              "dbname",
                              nullptr};
  const char* const values[] = {
      "perceptrond", "5", "5", "2", "3", "10000", "read-write", "UTF8", settings.c_str(), nullptr};
  PGconn* const made = PQconnectdbParams(keys, values, /*expand_dbname=*/1);
  if (made == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
  std::unique_ptr<Connection> connection(new Connection(made, wake));
  if (PQstatus(made) == CONNECTION_OK) return connection;
  // A line for each host that was tried.
  const std::string message = absl::StrReplaceAll(absl::StripAsciiWhitespace(PQerrorMessage(made)),
                                                  {{"\n", "; "}, {"\t", ""}});
  if (PQconnectionNeedsPassword(made) != 0 || absl::StrContains(message, "authentication failed"))
    return absl::UnauthenticatedError(absl::StrCat("PostgreSQL: ", message));
  return absl::UnavailableError(absl::StrCat("PostgreSQL: ", message));
}

absl::Status Connection::ErrorOf(const PGresult* result) const {
  const char* const field =
      result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const absl::string_view state = field == nullptr ? "" : field;
  const std::string message = absl::StrCat(
      "PostgreSQL: ",
      Clean(result == nullptr ? PQerrorMessage(connection_) : PQresultErrorMessage(result)));
  if (state == "40001" || state == "40P01") return absl::AbortedError(message);
  // Whether it was completed is not known.
  if (state == "40003" || state == "08007") return absl::UnknownError(message);
  if (state == "23505") return absl::AlreadyExistsError(message);
  if (state == "22012") return absl::OutOfRangeError(message);
  if (state == "42501") return absl::PermissionDeniedError(message);
  if (StartsWithAny(state, {"XX001", "XX002"})) return absl::DataLossError(message);
  if (StartsWithAny(state, {"42", "0A", "22"})) return absl::FailedPreconditionError(message);
  return absl::UnavailableError(message);
}

absl::StatusOr<Result> Connection::Await(absl::Time deadline) {
  while (PQisBusy(connection_) != 0) {
    pollfd waits[] = {{PQsocket(connection_), POLLIN, 0}, {wake_, POLLIN, 0}};
    const absl::Duration left = deadline - absl::Now();
    const int timeout =
        left > absl::Hours(1)
            ? -1
            : static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(left)));
    const int ready = poll(waits, 2, timeout);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return absl::DeadlineExceededError("PostgreSQL does not answer");
    if (waits[1].revents != 0) return absl::CancelledError("the journal is being closed");
    if (PQconsumeInput(connection_) == 0) return ErrorOf(nullptr);
  }
  return Result(PQgetResult(connection_));
}

bool Connection::Send(const char* sql, const Parameters& parameters) {
  std::vector<const char*> values;
  std::vector<int> sizes;
  std::vector<int> formats(parameters.values_.size(), 1);
  for (const std::string& value : parameters.values_) {
    values.push_back(value.data());
    sizes.push_back(static_cast<int>(value.size()));
  }
  return PQsendQueryParams(connection_, sql, static_cast<int>(values.size()),
                           parameters.types_.data(), values.data(), sizes.data(), formats.data(),
                           /*resultFormat=*/1) != 0;
}

absl::StatusOr<Result> Connection::Run(const char* sql, const Parameters& parameters,
                                       absl::Duration timeout) {
  idle_ = false;
  if (!Send(sql, parameters)) return ErrorOf(nullptr);
  const absl::Time deadline = absl::Now() + timeout;
  Result last;
  absl::Status failed;
  while (true) {
    absl::StatusOr<Result> result = Await(deadline);
    if (!result.ok()) return absl::UnavailableError(result.status().message());
    if (*result == nullptr) break;
    const ExecStatusType status = PQresultStatus(result->get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) failed = ErrorOf(result->get());
    last = *std::move(result);
  }
  idle_ = true;
  if (!failed.ok()) return failed;
  return last;
}

absl::Status Connection::RunTransaction(const std::vector<Statement>& statements) {
  warned_ = false;
  idle_ = false;
  if (PQenterPipelineMode(connection_) == 0) return ErrorOf(nullptr);
  const auto unknown = [&](const absl::Status& why) {
    return absl::UnknownError(
        absl::StrCat("whether a change was made is not known: ", why.message()));
  };
  for (const Statement& statement : statements) {
    if (!Send(statement.sql.c_str(), statement.parameters)) return unknown(ErrorOf(nullptr));
  }
  if (PQpipelineSync(connection_) == 0) return unknown(ErrorOf(nullptr));
  absl::Status failed;
  bool committed = false;
  // Each statement's results end with a null; the last result is that of the synchronization.
  for (size_t i = 0; i <= statements.size();) {
    absl::StatusOr<Result> result = Await(absl::InfiniteFuture());
    if (!result.ok()) return unknown(result.status());
    if (*result == nullptr) {
      if (PQstatus(connection_) == CONNECTION_BAD) return unknown(ErrorOf(nullptr));
      ++i;
      continue;
    }
    const ExecStatusType status = PQresultStatus(result->get());
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      // Of a transaction that has failed the tag is ROLLBACK.
      committed = std::strcmp(PQcmdStatus(result->get()), "COMMIT") == 0;
    } else if (status != PGRES_PIPELINE_ABORTED && failed.ok()) {
      failed = ErrorOf(result->get());
      if (PQstatus(connection_) == CONNECTION_BAD || absl::IsUnknown(failed))
        return unknown(failed);
    }
  }
  if (PQexitPipelineMode(connection_) == 0) return unknown(ErrorOf(nullptr));
  idle_ = true;
  if (!failed.ok()) {
    if (PQtransactionStatus(connection_) != PQTRANS_IDLE) Run("ROLLBACK").IgnoreError();
    return failed;
  }
  // A wait for a standby that was cancelled is a warning: the standby may not have it.
  if (!committed || warned_) return unknown(absl::UnavailableError("a standby may not have it"));
  return absl::OkStatus();
}

}  // namespace perceptrond::postgres
