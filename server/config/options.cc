#include "server/config/options.h"

#include "server/config/flag_list.h"

namespace perceptrond {

std::vector<Flag> MakeFlags(Options* o) {
  FlagList flags;
  flags.Addresses(
      "address", &o->addresses,
      "Addresses to serve gRPC on: HOST:PORT, [IPV6]:PORT or unix:PATH, separated by commas.\n"
      "Port 0 takes a free port. Every client that reaches an address can read, train and\n"
      "delete all models, unless --access-file or --tls-client-ca is set. One that other machines\n"
      "can reach needs TLS and one of these, or --insecure.");
  flags.Directory(
      "data-dir", &o->data_dir,
      "Directory of the journal, which holds all models. Created if missing. Only one server\n"
      "at a time can use it.");
  flags.Directory(
      "backup-dir", &o->backup_dir,
      "Directory for the backups that perceptronctl backup asks for, on another disk than the\n"
      "journal's if it is to survive that one. Created if missing. Empty: no backups.");
  flags.Choice(
      "accept-data-loss", &o->accept_data_loss, {{"no", false}, {"yes", true}},
      "Whether to start although the journal's log ends before what was written to it. no: the\n"
      "server refuses, so that the log can be brought back. yes: it goes on without the lost\n"
      "updates, and producers that had them acknowledged receive an error. For one start.");
  flags.Journal(
      "journal", &o->journal, &o->postgres,
      "Where models are stored. rocksdb: in --data-dir. memory: nowhere; all models are lost when\n"
      "the server stops. postgres://USER@HOST[:PORT][,HOST...]/DATABASE[?PARAMETER=VALUE&...]: in\n"
      "PostgreSQL, by libpq, which all servers of a fleet share (docs/scale.md). A password is in\n"
      "the file that the parameter passfile names, in ~/.pgpass, or in PGPASSWORD.");
  flags.Schema("fleet", &o->fleet,
               "The fleet's name: that of its schema in the database, which is made if missing.\n"
               "Lower-case letters, digits and underscores.");
  flags.Address(
      "fleet-address", &o->fleet_address,
      "Where the other servers of the fleet reach this one. It listens there for them alone.");
  flags.OptionalAddress(
      "client-address", &o->client_address,
      "Where clients reach this server of a fleet, with which it names itself to those that it\n"
      "writes most rows of. Empty: the host of --fleet-advertise, else of --fleet-address, with "
      "the\n"
      "port of --address.");
  flags.Address("fleet-advertise", &o->fleet_advertise,
                "Where they reach it if not at --fleet-address, as behind NAT. Empty: there.");
  flags.Number("fleet-partitions", "Partitions", &o->fleet_partitions, 1, 256,
               "Partitions of the fleet's models, each of which one server writes. Fixed when the\n"
               "fleet is created.");
  flags.Time("fleet-timeout", &o->fleet_timeout, absl::Milliseconds(200), absl::Minutes(10),
             "A server that was not heard of for this time is taken for dead, and others take its\n"
             "partitions over.");
  flags.Time(
      "fleet-max-lag", &o->fleet_max_lag, absl::Milliseconds(100), absl::Hours(24),
      "While copies here lack updates that the log has had for longer, and another server's do\n"
      "not, PredictionService is NOT_SERVING by gRPC's health checks. It answers all the same.");
  flags.File("fleet-cert", &o->fleet_cert,
             "PEM file with this server's certificate for other servers of the fleet, for the DNS\n"
             "name perceptrond, with --fleet-key and --fleet-ca. Each server checks the other's.");
  flags.File("fleet-key", &o->fleet_key, "PEM file with the private key of --fleet-cert.");
  flags.File(
      "fleet-ca", &o->fleet_ca,
      "PEM file with the authority that signed the certificates of all servers of the fleet.\n"
      "It must sign no other: a client with such a certificate may do everything.");
  flags.Choice(
      "durability", &o->durability,
      {{"auto", DurabilityChoice::kAuto},
       {"sync", DurabilityChoice::kSync},
       {"interval", DurabilityChoice::kInterval},
       {"none", DurabilityChoice::kNone},
       {"replicated", DurabilityChoice::kReplicated},
       {"external", DurabilityChoice::kExternal}},
      "When updates reach the disk. sync: before they are acknowledged; concurrent streams share\n"
      "one fsync. interval: at most --durability-interval later. none: when the operating system\n"
      "writes them. A power failure loses updates that have not reached the disk; killing the\n"
      "server loses no acknowledged update. With PostgreSQL alone: replicated, also on the disk "
      "of\n"
      "a synchronous standby; external, as the database does it, whose settings are not looked "
      "at.\n"
      "interval and none are not for PostgreSQL. auto: sync.");
  flags.Time(
      "durability-interval", &o->durability_interval, absl::Milliseconds(1), absl::Hours(1),
      "The time between two fsyncs with --durability=interval: a power failure loses at most this\n"
      "much.");
  flags.Bytes(
      "memory-budget", &o->memory_budget, kMiB, 1024 * kTiB,
      "Memory for models, requests, answers and analyses together. Models may take three\n"
      "quarters of it. Above it the server evicts the least recently used models, which are\n"
      "loaded again on their next use, then reads streams one message at a time, and then\n"
      "refuses requests with RESOURCE_EXHAUSTED (MEMORY_EXHAUSTED).");
  flags.Bytes(
      "in-flight-budget", &o->in_flight_budget, 0, 1024 * kTiB,
      "The part of --memory-budget that requests, answers and analyses may take together. 0: what\n"
      "models in use leave, and at least a quarter. More is MEMORY_EXHAUSTED.");
  flags.Time(
      "write-timeout", &o->write_timeout, absl::Seconds(1), absl::Hours(1),
      "How long a client may take to receive an answer, and a second more for each 64KiB of it.\n"
      "While answers and requests take more than an eighth of --memory-budget, or half of\n"
      "--in-flight-budget, the server ends calls of clients that take longer.");
  flags.Number("max-models", "Models", &o->max_models, 1, 100'000'000,
               "The most models. Creating another is RESOURCE_EXHAUSTED (MODEL_LIMIT).");
  flags.Number(
      "max-model-features", "Features", &o->max_model_features, 1, uint64_t{1} << 28,
      "The most dimensions, slots or names that a new model may have. A model with more is\n"
      "RESOURCE_EXHAUSTED (MODEL_TOO_LARGE). Its names also end where its memory does.");
  flags.Number(
      "max-producers", "Producers", &o->max_producers, 1, 10'000'000,
      "The named producers whose positions a model keeps, some 300 bytes each. A new one beyond\n"
      "them is RESOURCE_EXHAUSTED (PRODUCER_LIMIT).");
  flags.Bytes(
      "max-message-bytes", &o->max_message_bytes, 64 * kKiB, kGiB,
      "Size limit of a request message. A larger message ends its call with RESOURCE_EXHAUSTED\n"
      "(MESSAGE_TOO_LARGE). gRPC rejects a message of more than four times this limit unread.");
  flags.Number(
      "max-connections", "Connections", &o->max_connections, 0, 1000000,
      "Connections at which the server refuses further ones. The first call on one of these ends\n"
      "with RESOURCE_EXHAUSTED (TOO_MANY_CONNECTIONS), unless it is Health.Check. Beyond 32 at a\n"
      "time, and on Unix sockets, they are closed at once. Each connection takes two open files.\n"
      "0: half of the open files that the process may have, less those for the journal; at most\n"
      "10000.");
  flags.Number(
      "max-connections-per-address", "Connections", &o->max_connections_per_address, 0, 1000000,
      "The same for one IPv4 address or one IPv6 network of 64 bits, except this machine's own.\n"
      "0: a quarter of --max-connections.");
  flags.Number("max-streams-per-connection", "Calls", &o->max_streams_per_connection, 1, 1000000,
               "Calls in flight on one connection at which the server refuses further ones with\n"
               "RESOURCE_EXHAUSTED (TOO_MANY_STREAMS). Health checks are answered nevertheless.");
  flags.Number("max-streams", "Calls", &o->max_streams, 1, 1000000,
               "The same for all connections together. Health.Watch gets a quarter of them.");
  flags.Time(
      "receive-timeout", &o->receive_timeout, absl::Seconds(1), absl::Hours(24),
      "How long a request may take to arrive. A later one ends with DEADLINE_EXCEEDED\n"
      "(REQUEST_TIMEOUT). A connection on which no message ends for as long, though one was\n"
      "begun, is closed.");
  flags.Time(
      "max-connection-idle", &o->max_connection_idle, absl::ZeroDuration(), absl::Hours(24),
      "How long a connection may have no call before the server closes it. gRPC's clients open\n"
      "another for their next call. 0: no limit.");
  flags.Time("max-connection-age", &o->max_connection_age, absl::ZeroDuration(),
             absl::Hours(24 * 365),
             "How long a connection may exist. Then its client opens another, and calls in flight "
             "have as\n"
             "long again to end before they are cancelled. 0: no limit.");
  flags.Time(
      "self-probe-interval", &o->self_probe_interval, absl::ZeroDuration(), absl::Hours(1),
      "How often the server connects to its own addresses. If one that has answered does not, "
      "three\n"
      "times in a row and within 10s, the process ends with an error, so that its supervisor\n"
      "starts it again. 0: never.");
  flags.Number(
      "max-in-flight-messages", "Messages per stream", &o->max_in_flight_messages, 1, 10000,
      "Unanswered messages at which the server stops reading a stream until it has sent answers.\n"
      "A higher limit hides more latency and uses more memory.");
  flags.Bytes("max-in-flight-bytes", &o->max_in_flight_bytes, 64 * kKiB, 16 * kGiB,
              "The same limit in bytes per stream, for answers and for updates on their way to the "
              "journal.\n"
              "A stream can always send one message, whatever its size.");
  flags.Number(
      "max-example-features", "Features", &o->max_example_features, 1, uint64_t{1} << 28,
      "The most features that one example may have. More are the row error RESOURCE_EXHAUSTED\n"
      "(TOO_MANY_FEATURES).");
  flags.Number(
      "max-message-cost", "Multiply-adds", &o->max_message_cost, 1'000'000, uint64_t{1} << 60,
      "The most work that one message may take, estimated before it begins: rows times mapped\n"
      "features, times classes or support examples. A processor does about 10^9 a second, so the\n"
      "default is about four seconds. More is RESOURCE_EXHAUSTED (MESSAGE_TOO_COSTLY); a row that\n"
      "takes more alone is the row error ROW_TOO_COSTLY.");
  flags.Number("max-queued-calls", "Calls", &o->max_queued_calls, 1, 1000000,
               "The most unary calls of one kind (management, small, large) that wait for a "
               "thread. More are\n"
               "RESOURCE_EXHAUSTED (SERVER_BUSY).");
  flags.Time(
      "max-queue-wait", &o->max_queue_wait, absl::Milliseconds(1), absl::Minutes(1),
      "How long a unary call may wait for a thread under overload, when calls have not stopped\n"
      "waiting for ten times as long. In a burst ten times, and a large call, of a million\n"
      "multiply-adds, a hundred times as long. Those that would wait longer are\n"
      "RESOURCE_EXHAUSTED (SERVER_BUSY), so that the others keep their latency.");
  flags.Time("max-analysis-time", &o->max_analysis_time, absl::Milliseconds(100),
             absl::Hours(24 * 30),
             "How long an analysis may run. It answers with what it has proven by then. A request "
             "for more\n"
             "is RESOURCE_EXHAUSTED (ANALYSIS_TIME).");
  flags.Number(
      "max-queued-analyses", "Analyses", &o->max_queued_analyses, 1, 10000,
      "The most analyses that run or wait. Another is RESOURCE_EXHAUSTED (ANALYSIS_QUEUE_FULL).");
  flags.Bytes(
      "snapshot-bytes", &o->snapshot_bytes, 4 * kKiB, kTiB,
      "Size of a model's journal at which the server writes a snapshot, if that is also more than\n"
      "twice the size of the model. A smaller size makes loading faster and writes more.");
  flags.Bytes(
      "max-history-bytes", &o->max_history_bytes, 0, kTiB,
      "The most bytes of updates before its latest snapshot that a model with kept snapshots\n"
      "keeps in the journal, to be rolled back to each revision since the oldest of them. Beyond\n"
      "it the oldest are dropped, and the kept snapshots' own revisions stay; 0 keeps none.");
  flags.MetricsAddress(
      "metrics-address", &o->metrics_address,
      "Address to serve Prometheus metrics on, over HTTP at /metrics; off serves none.\n"
      "Every client that reaches it can read the names and figures of all models.");
  flags.HostNames(
      "metrics-hosts", &o->metrics_hosts,
      "Names of machines by which metrics and status page may be asked for, as the Host header "
      "has\n"
      "them, beside addresses and localhost; others get 403, so that no web site can read them\n"
      "through a browser here. Empty: on loopback no name is allowed, elsewhere every one.");
  flags.Number(
      "metrics-max-models", "Models", &o->metrics_max_models, 0, 1000000,
      "The most models with metrics of their own, which are 30 to 50 series each. Further models\n"
      "are counted in perceptrond_models_not_exported.");
  flags.Switch("metrics-tls", &o->metrics_tls,
               "Serve metrics and status page over TLS, with --tls-cert and --tls-key.");
  flags.Choice(
      "status-page", &o->status_page, {{"on", true}, {"off", false}},
      "Whether to serve a page with all models and their learning curves, at / of the metrics\n"
      "address. Every client that reaches it can read names, descriptions, curves and the top\n"
      "features of all models.");
  flags.Time(
      "busy-poll", &o->busy_poll, absl::ZeroDuration(), absl::Milliseconds(1),
      "How long an idle server polls for the next request before it sleeps, while requests arrive\n"
      "one at a time. Polling lowers latency, since waking up takes longer than answering, and "
      "uses\n"
      "processor time. Set 0 where that is limited, as in a container with a CPU limit. Has an\n"
      "effect on machines with two to seven processors only.");
  flags.Time(
      "drain-timeout", &o->drain_timeout, absl::ZeroDuration(), absl::Hours(1),
      "How long a stopping server waits for in-flight calls before it cancels them. Acknowledged\n"
      "updates are kept in both cases.");
  flags.Choice(
      "log-level", &o->log_level,
      {{"trace", LogLevel::kTrace},
       {"debug", LogLevel::kDebug},
       {"info", LogLevel::kInfo},
       {"warning", LogLevel::kWarning},
       {"error", LogLevel::kError}},
      "The least severe level that is logged, to standard error. debug and trace include messages\n"
      "of gRPC and Protobuf.");
  flags.Choice(
      "log-format", &o->log_format, {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
      "Format of log lines. text: a message and key=value pairs. json: one object per line.");
  flags.TimeOrOff("slow-call", &o->slow_call, absl::Hours(1),
                  "Log each unary call, and each message of a stream, that takes longer, with what "
                  "the time was\n"
                  "spent on: at most ten lines a second.");
  flags.File(
      "tls-cert", &o->tls_cert,
      "PEM file with the server's certificate chain. Enables TLS, with --tls-key; without both\n"
      "nothing is encrypted.");
  flags.File("tls-key", &o->tls_key, "PEM file with the private key of --tls-cert.");
  flags.File(
      "tls-client-ca", &o->tls_client_ca,
      "PEM file with certificate authorities. Clients must have a certificate that one of these\n"
      "signed. Without it every client is accepted.");
  flags.File(
      "access-file", &o->access_file,
      "File that says who may do what: tokens and certificate names, and their roles.\n"
      "Read again on SIGHUP and when it changes. Without it every client may do everything.");
  flags.Number(
      "max-examples-per-second", "Examples", &o->max_examples_per_second, 0, uint64_t{1} << 40,
      "The most examples that a principal of --access-file may send in a second, unless\n"
      "the file gives it another limit; 0 is no limit. Streams are read more slowly; other\n"
      "calls end with RESOURCE_EXHAUSTED (RATE_LIMITED) and the time to wait.");
  flags.NewFile("audit-log", &o->audit_log,
                "File that administrative and denied calls are appended to, as lines of JSON.\n"
                "Opened again on SIGHUP. Without it they are in the log.");
  flags.Switch("insecure", &o->insecure,
               "Serve on addresses that other machines can reach also without TLS and\n"
               "authentication: all callers may do everything. For networks of your own.");
  return flags.Take();
}

}  // namespace perceptrond
