// A file that appears under its name only when it is whole.
#pragma once

#include <string>
#include <string_view>

namespace perceptrond::client {

// Written under another name beside its own, PATH.part-*, which goes with this object if the file was
// not closed before. Each method returns false if it failed, with the reason in errno.
//
//   NewFile file("spam.model");
//   const bool written = file.Open() && file.Write(bytes) && file.Close();
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), partial_(path + ".part-XXXXXX") {}
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  bool Open();
  bool Write(std::string_view bytes);
  // Has the file on the disk, then gives it its name, in the place of a file that has it.
  bool Close();

 private:
  const std::string path_;
  std::string partial_;
  int descriptor_ = -1;
  bool exists_ = false;
};

}  // namespace perceptrond::client
