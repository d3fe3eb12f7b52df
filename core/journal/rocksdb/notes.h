// RocksDB's notes, the file LOG of its directory.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

namespace perceptrond {

// Begins new notes in the directory; those before become LOG.old. Notes that cannot be written, as
// on a full disk, are dropped. RocksDB's own log would end the process with the second such note,
// by an assertion that Debian's build has.
std::shared_ptr<rocksdb::Logger> MakeNotes(const std::string& directory);
// Notes that are written nowhere.
std::shared_ptr<rocksdb::Logger> NoNotes();

}  // namespace perceptrond
