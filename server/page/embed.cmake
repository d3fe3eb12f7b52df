# Writes a source file that holds files as they are: cmake -DOUT=FILE "-DFILES=name=path;..." -P embed.cmake
set(arrays)
set(entries)
set(number 0)
foreach(entry IN LISTS FILES)
  string(REGEX MATCH "^([^=]+)=(.*)$" _ "${entry}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  # Lines that an editor can open.
  string(REPEAT "0x..," 20 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {\n${bytes}};\n")
  string(APPEND entries "    {\"${name}\", View(kFile${number}, sizeof(kFile${number}))},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUT}" "// Made by server/page/embed.cmake.
#include \"server/page/embedded.h\"

namespace perceptrond {
namespace {

${arrays}
absl::string_view View(const unsigned char* bytes, size_t size) {
  return absl::string_view(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace

std::span<const EmbeddedFile> EmbeddedFiles() {
  static const EmbeddedFile files[] = {
${entries}  };
  return files;
}

}  // namespace perceptrond
")
