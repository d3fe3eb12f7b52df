// A connection to PostgreSQL, by libpq.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace perceptrond::postgres {

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, ClearResult>;

// The parameters of a statement, in binary form.
class Parameters {
 public:
  Parameters& AddBytes(absl::string_view bytes);
  // An array of byte strings: one parameter.
  Parameters& AddArray(const std::vector<absl::string_view>& all);
  Parameters& AddText(absl::string_view text);

 private:
  friend class Connection;
  void Add(Oid type, std::string value);

  std::vector<Oid> types_;
  std::vector<std::string> values_;
};

// Errors of every method: UNAVAILABLE: the connection is broken, or the server cannot do it now; ABORTED: the transaction
// is to be tried again; ALREADY_EXISTS: a key is there (SQLSTATE 23505); OUT_OF_RANGE: a division by zero (22012), which
// is how a statement says that a condition does not hold; PERMISSION_DENIED; DATA_LOSS; FAILED_PRECONDITION. The message
// has the server's.
//
// Used by one thread at a time, but for Interrupt.
class Connection {
 public:
  // `settings`: libpq's connection string; `wake`: a descriptor that becomes readable to end what waits. UNAVAILABLE;
  // UNAUTHENTICATED; INVALID_ARGUMENT.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& settings, int wake);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // It cannot be used again: it broke, or what was asked of it is not answered.
  bool broken() const { return !idle_ || PQstatus(connection_) == CONNECTION_BAD; }
  int socket() const { return PQsocket(connection_); }
  PGconn* get() const { return connection_; }

  // Runs one statement, whose rows are in binary form. Waits at most this long for the server.
  absl::StatusOr<Result> Run(const char* sql, const Parameters& parameters = {},
                             absl::Duration timeout = absl::Seconds(30));

  // Statements that are sent together, and whose results are awaited together.
  struct Statement {
    std::string sql;
    Parameters parameters;
  };
  // Runs the statements, of which the last ends the transaction that the first begins. The first error is returned, and
  // the transaction is rolled back. UNKNOWN: the connection broke, or the server warned that the commit may not be on
  // a standby: whether the transaction was committed is not known. Waits as long as the server takes.
  absl::Status RunTransaction(const std::vector<Statement>& statements);

 private:
  Connection(PGconn* connection, int wake);
  static void OnNotice(void* self, const PGresult* notice);
  // False: the connection broke.
  bool Send(const char* sql, const Parameters& parameters);
  // The next result; null: the statement has no more.
  absl::StatusOr<Result> Await(absl::Time deadline);
  absl::Status ErrorOf(const PGresult* result) const;

  PGconn* const connection_;
  const int wake_;
  // All that was asked is answered, and no transaction is open but that of BEGIN by itself.
  bool idle_ = true;
  // A warning came since RunTransaction began.
  bool warned_ = false;
};

}  // namespace perceptrond::postgres
