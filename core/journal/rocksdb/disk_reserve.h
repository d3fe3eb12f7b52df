// A file that keeps some space of a disk, so that a little can be written when other programs have
// filled it: what a deletion needs.
#pragma once

#include <string>

namespace perceptrond {

// Makes the file in the directory, unless it is there. Without it the directory works all the same:
// a failure leaves none.
void MakeDiskReserve(const std::string& directory);
bool HasDiskReserve(const std::string& directory);
// Removes it. False if there was none.
bool ReleaseDiskReserve(const std::string& directory);

}  // namespace perceptrond
