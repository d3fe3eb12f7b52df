# Writes a source file that holds files, plain and compressed:
#   cmake -DOUT=FILE -DGZIP=PROGRAM "-DFILES=name=path;..." -P embed.cmake
set(arrays)
set(entries)

# Appends `path`'s bytes as an array called `name`.
function(append_array name path)
  file(READ "${path}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  # Lines that an editor can open.
  string(REPEAT "0x..," 20 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  set(arrays "${arrays}constexpr unsigned char ${name}[] = {\n${bytes}};\n" PARENT_SCOPE)
endfunction()

set(number 0)
foreach(entry IN LISTS FILES)
  string(REGEX MATCH "^([^=]+)=(.*)$" _ "${entry}")
  set(name ${CMAKE_MATCH_1})
  set(path "${CMAKE_MATCH_2}")
  # At build time, since compressing at each start of the server would make the start a quarter longer.
  execute_process(COMMAND "${GZIP}" -9nc "${path}" OUTPUT_FILE "${OUT}.gz" COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 "${path}" digest)
  append_array(kPlain${number} "${path}")
  append_array(kGzipped${number} "${OUT}.gz")
  string(APPEND entries "    {\"${name}\", View(kPlain${number}), View(kGzipped${number}), \"${digest}\"},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(REMOVE "${OUT}.gz")
file(WRITE "${OUT}" "// Made by server/page/embed.cmake.
#include \"server/page/http.h\"

namespace perceptrond {
namespace {

${arrays}
template <size_t size>
absl::string_view View(const unsigned char (&bytes)[size]) {
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
