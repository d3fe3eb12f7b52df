// Unix-domain sockets, which a second server could take from the first without a word.
#pragma once

#include <string>

namespace perceptrond {

// Whether somebody answers at the socket of this path. A file that a server left behind is nobody.
bool IsListenedOn(const std::string& path);

}  // namespace perceptrond
