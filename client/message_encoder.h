// MessageEncoder: puts the messages of one stream into the form in which they are sent. Until then
// their names have the numbers of the BatchBuilder, so that a message that was not answered can be
// sent again on another connection, whose table of names is another.
//
//   MessageEncoder encoder(options.name_table_size, options.compact);
//   first.set_name_table_size(encoder.wanted_table_size());
//   encoder.StartConnection(opened.name_table_size());
//   encoder.Encode(columns, numbers, request.mutable_columns());
//
// While the connection has a table of names (ExampleColumns.stream_names), a name is sent once, and
// then its number until it has left the table. A message has names of its own if they are more than
// a quarter of the table; and so have most messages while the stream has more names than the table
// can hold, because names that come and go in the table cost both sides more than they save.
//
// As long as the table holds all names of the builder, their numbers in both differ by a constant,
// and nothing is looked up.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "client/feature_sorter.h"
#include "client/name_numbers.h"
#include "perceptron/v1/example.pb.h"

namespace perceptrond::client {

// The largest table of names that a server grants.
inline constexpr uint32_t kMostTableNames = 1u << 18;

// The size of table to ask for: a power of two, at most `wanted`; 0 if `wanted` is below 4, the
// least that is of use.
uint32_t NameTableSize(uint32_t wanted);

// How many names a message may append at most, so that no name that it uses leaves the table before
// its end: a quarter.
inline uint32_t MostAppended(uint32_t table_size) { return table_size / 4; }

class MessageEncoder {
 public:
  // `table_size`: the most names of a table to ask for. `compact`: indices as differences, and
  // values in 16 bits where that changes none of a message. `bytes_per_message`: the BatchBuilder's
  // limit; a message appends no more bytes of names that are not its own.
  MessageEncoder(uint32_t table_size, bool compact, size_t bytes_per_message = 1 << 20)
      : wanted_table_size_(NameTableSize(table_size)),
        compact_(compact),
        bytes_per_message_(bytes_per_message) {}

  // The size of table to ask a server for; 0: none.
  uint32_t wanted_table_size() const { return wanted_table_size_; }
  // Whether a connection failed with `status` because the server does not know a form that was
  // asked for. Then neither is asked for from now on.
  bool AskForLess(const absl::Status& status);

  // Starts a connection whose table holds `table_size` names; below 4: it has none. most_bytes: of the server's largest
  // message; 0: unknown.
  void StartConnection(uint32_t table_size, size_t most_bytes = 0);

  // Whether Encode() changes the rows.
  bool Changes(const perceptron::v1::ExampleColumns& rows) const;

  // Writes `rows` into *columns, which is empty; both `rows` and `names` as
  // BatchBuilder::BuildUnsorted() made them. Messages must be sent in the order in which they were
  // encoded. O(features).
  void Encode(const perceptron::v1::ExampleColumns& rows, const NameNumbers& names,
              perceptron::v1::ExampleColumns* columns);

 private:
  bool MayUseTable(const perceptron::v1::ExampleColumns& rows, const NameNumbers& names);
  // Whether the table holds the builder's names, once it has *appended.
  bool HoldsAllNames(const NameNumbers& names, perceptron::v1::NameColumn* appended);
  // Puts the number of each name in the table in place of the builder's.
  void NumberInTable(const NameNumbers& names, perceptron::v1::ExampleColumns* columns);
  // Fills numbers_ with the numbers in the table of the names in list_, and *appended with the
  // names new to it.
  void LookUpNames(const NameNumbers& names, perceptron::v1::NameColumn* appended);

  uint32_t wanted_table_size_;
  bool compact_;
  size_t bytes_per_message_;
  FeatureSorter sorter_;
  NumberList list_;

  uint32_t table_size_ = 0;
  // How many names were appended to the table.
  uint32_t appended_ = 0;
  // Messages to go that have names of their own.
  int resting_ = 0;
  // The names of the latest message. Kept, so that no other era has their address.
  std::shared_ptr<const EraNames> era_;
  // The table holds the first in_order_ names of the era from first_in_order_ on, unless
  // out_of_order_.
  uint32_t first_in_order_ = 0;
  uint32_t in_order_ = 0;
  bool out_of_order_ = false;
  // With out_of_order_: the number in the table of each name of the era; any number that is too old
  // if it has none.
  std::vector<int64_t> in_table_;
  // Of the names of a message in the table.
  std::vector<uint32_t> numbers_;
};

}  // namespace perceptrond::client
