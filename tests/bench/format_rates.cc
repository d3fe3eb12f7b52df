// How fast example files are read: rows per second of each format, read into rows and built into
// messages, beside a plain scan for line ends over the same file mapped into memory, and beside
// the readers of Vowpal Wabbit and scikit-learn. Prints a table of medians over interleaved rounds.
//
//   format_rates [--rows N] [--rounds N] [--directory DIR] [--formats F,...]
//                [--vw VW] [--python PYTHON]
//
// The rows have 75 names out of 100,000, drawn by Zipf's law, and labels by a hidden plane; those of
// CSV have 75 columns. The files stay in DIR.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/batch_builder.h"
#include "client/format/format.h"
#include "client/format/reader.h"

namespace perceptrond::client {
namespace {

constexpr uint32_t kNames = 100'000;
constexpr uint32_t kFeatures = 75;
constexpr size_t kRowsAMessage = 512;

struct Settings {
  size_t rows = 100'000;
  int rounds = 5;
  std::string directory = std::filesystem::temp_directory_path() / "perceptrond_format_rates";
  // Formats to measure; empty: all.
  std::vector<std::string> formats;
  std::string vw;
  std::string python;
};

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "format_rates: %s\n", message.c_str());
  std::exit(1);
}

// Draws distinct numbers below kNames, small ones more often.
class Zipf {
 public:
  Zipf() {
    double sum = 0;
    for (uint32_t i = 1; i <= kNames; ++i) cumulative_.push_back(sum += 1.0 / i);
  }
  std::vector<uint32_t> Draw(std::mt19937& random) {
    std::vector<uint32_t> drawn;
    std::uniform_real_distribution<double> below(0, cumulative_.back());
    while (drawn.size() < kFeatures) {
      const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end(), below(random));
      const auto number = static_cast<uint32_t>(at - cumulative_.begin());
      if (number >= kNames || taken_[number]) continue;
      taken_[number] = true;
      drawn.push_back(number);
    }
    for (const uint32_t number : drawn) taken_[number] = false;
    return drawn;
  }

 private:
  std::vector<double> cumulative_;
  std::vector<bool> taken_ = std::vector<bool>(kNames);
};

struct File {
  std::string format;
  std::string path;
  FormatOptions options;
};

struct Example {
  int label;
  std::vector<uint32_t> names;
  // "1", or a short decimal for one feature in four.
  std::vector<std::string> values;
};

// A side of a plane through the origin, which `normal` has by name.
Example MakeExample(Zipf& zipf, const std::vector<float>& normal, std::mt19937& random) {
  Example example;
  example.names = zipf.Draw(random);
  double score = 0;
  for (const uint32_t name : example.names) {
    const uint32_t thousandths = random() % 4 == 0 ? random() % 10'000 : 1000;
    example.values.push_back(
        thousandths == 1000 ? "1"
                            : absl::StrFormat("%.3f", static_cast<double>(thousandths) / 1000));
    score += normal[name] * thousandths;
  }
  example.label = score > 0 ? 1 : -1;
  return example;
}

std::string Svmlight(const Example& example) {
  std::vector<std::pair<uint32_t, std::string>> features;
  for (size_t i = 0; i < example.names.size(); ++i)
    features.emplace_back(example.names[i], example.values[i]);
  std::sort(features.begin(), features.end());
  std::string line = absl::StrCat(example.label);
  for (const auto& [index, value] : features) absl::StrAppend(&line, " ", index + 1, ":", value);
  return line;
}

std::string Vw(const Example& example) {
  std::string line = absl::StrCat(example.label, " |f");
  for (size_t i = 0; i < example.names.size(); ++i) {
    absl::StrAppend(&line, " w", example.names[i]);
    if (example.values[i] != "1") absl::StrAppend(&line, ":", example.values[i]);
  }
  return line;
}

std::string Csv(const Example& example) {
  std::string line = absl::StrCat(example.label);
  for (const std::string& value : example.values) absl::StrAppend(&line, ",", value);
  return line;
}

std::string Jsonl(const Example& example) {
  std::string names;
  std::string values;
  for (size_t i = 0; i < example.names.size(); ++i) {
    absl::StrAppend(&names, i == 0 ? "" : ", ", "\"w", example.names[i], "\"");
    absl::StrAppend(&values, i == 0 ? "" : ", ", example.values[i]);
  }
  return absl::StrCat("{\"named\": {\"names\": [", names, "], \"values\": [", values,
                      "]}, \"label\": ", example.label, "}");
}

std::string Text(const Example& example) {
  std::string line = absl::StrCat(example.label, "\t");
  for (size_t i = 0; i < example.names.size(); ++i)
    absl::StrAppend(&line, i == 0 ? "W" : " w", example.names[i], i % 15 == 14 ? "." : "");
  return line;
}

std::string CsvHeader() {
  std::string line = "label";
  for (uint32_t i = 0; i < kFeatures; ++i) absl::StrAppend(&line, ",column", i);
  return line + "\n";
}

std::vector<File> MakeFiles(const Settings& settings) {
  struct Kind {
    const char* name;
    FormatKind kind;
    std::string (*line)(const Example&);
  };
  constexpr Kind kKinds[] = {{"svmlight", FormatKind::kSvmlight, Svmlight},
                             {"vw", FormatKind::kVw, Vw},
                             {"csv", FormatKind::kCsv, Csv},
                             {"jsonl", FormatKind::kJsonl, Jsonl},
                             {"text", FormatKind::kText, Text}};
  std::filesystem::create_directories(settings.directory);
  std::vector<File> files;
  std::vector<Kind> kinds;
  std::vector<std::ofstream> streams;
  for (const Kind& kind : kKinds) {
    if (!settings.formats.empty() &&
        std::count(settings.formats.begin(), settings.formats.end(), kind.name) == 0)
      continue;
    File file;
    file.format = kind.name;
    file.path = absl::StrCat(settings.directory, "/rows.", kind.name);
    file.options.kind = kind.kind;
    file.options.index_base = 1;
    file.options.label_column = "label";
    files.push_back(file);
    kinds.push_back(kind);
    streams.emplace_back(file.path);
    if (kind.kind == FormatKind::kCsv) streams.back() << CsvHeader();
  }
  Zipf zipf;
  std::mt19937 random(1);
  std::normal_distribution<float> gauss;
  std::vector<float> normal(kNames);
  for (float& value : normal) value = gauss(random);
  for (size_t row = 0; row < settings.rows; ++row) {
    const Example example = MakeExample(zipf, normal, random);
    for (size_t i = 0; i < files.size(); ++i) streams[i] << kinds[i].line(example) << '\n';
  }
  for (std::ofstream& stream : streams) {
    stream.close();
    if (!stream) Fail(absl::StrCat("cannot write to ", settings.directory));
  }
  return files;
}

// The number of lines of the file.
size_t ScanLines(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0) Fail("cannot open " + path);
  const auto size = static_cast<size_t>(status.st_size);
  void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, descriptor, 0);
  if (mapped == MAP_FAILED) Fail("cannot map " + path);
  const char* p = static_cast<const char*>(mapped);
  const char* const end = p + size;
  size_t lines = 0;
  while (p != end) {
    const void* const found = std::memchr(p, '\n', static_cast<size_t>(end - p));
    ++lines;
    if (found == nullptr) break;
    p = static_cast<const char*>(found) + 1;
  }
  munmap(mapped, size);
  close(descriptor);
  return lines;
}

// Reads the file row by row; returns the number of rows.
size_t ReadRows(const File& file, const std::function<void(const Row&)>& on_row) {
  auto format = MakeFormat(file.options);
  auto source = OpenFile(file.path);
  if (!format.ok() || !source.ok()) Fail("cannot open " + file.path);
  Reader reader(file.path, *std::move(source), format->get(), 0);
  Row row;
  size_t rows = 0;
  while (true) {
    const absl::StatusOr<bool> more = reader.Next(&row);
    if (!more.ok()) Fail(std::string(more.status().message()));
    if (!*more) return rows;
    ++rows;
    on_row(row);
  }
}

size_t BuildMessages(const File& file) {
  BatchBuilder batch;
  perceptron::v1::ExampleColumns columns;
  std::string bytes;
  const size_t rows = ReadRows(file, [&](const Row& row) {
    if (const absl::Status status = batch.Add(row); !status.ok())
      Fail(std::string(status.message()));
    if (batch.rows() < kRowsAMessage) return;
    batch.Build(&columns);
    columns.SerializeToString(&bytes);
  });
  batch.Build(&columns);
  return rows;
}

double SecondsOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Runs a shell command, which must succeed.
void Run(const std::string& command) {
  const int status = std::system(command.c_str());
  if (status != 0) Fail(absl::StrCat("failed with status ", status, ": ", command));
}

// One way to read a file. `seconds` has one measurement a round.
struct Way {
  std::string name;
  std::string format;
  std::function<double()> measure;
  std::vector<double> seconds;
};

// Prints the seconds that reading alone takes, without the start of the interpreter.
constexpr char kPythonReader[] = R"(
import sys, time
path, kind = sys.argv[1:]
if kind == "svmlight":
    from sklearn.datasets import load_svmlight_file as read
else:
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
    vectorizer = HashingVectorizer() if kind == "hashing" else CountVectorizer()
    def read(path):
        with open(path) as lines:
            vectorizer.fit_transform(line.split("\t", 1)[1] for line in lines)
begin = time.perf_counter()
read(path)
print(time.perf_counter() - begin)
)";

double PythonSeconds(const Settings& settings, const std::string& path, const std::string& kind) {
  const std::string script = settings.directory + "/reader.py";
  std::ofstream(script) << kPythonReader;
  const std::string output = settings.directory + "/seconds";
  Run(absl::StrCat(settings.python, " ", script, " ", path, " ", kind, " > ", output));
  double seconds = 0;
  std::ifstream(output) >> seconds;
  return seconds;
}

std::vector<Way> MakeWays(const Settings& settings, const std::vector<File>& files) {
  std::vector<Way> ways;
  for (const File& file : files) {
    ways.push_back({"plain line scan",
                    file.format,
                    [&file] { return SecondsOf([&file] { ScanLines(file.path); }); },
                    {}});
    ways.push_back({"rows",
                    file.format,
                    [&file] { return SecondsOf([&file] { ReadRows(file, [](const Row&) {}); }); },
                    {}});
    ways.push_back({"messages",
                    file.format,
                    [&file] { return SecondsOf([&file] { BuildMessages(file); }); },
                    {}});
    if (!settings.vw.empty() && file.format == "vw") {
      const std::string command = absl::StrCat(settings.vw, " --quiet --noop -d ", file.path);
      ways.push_back({"vw --noop",
                      file.format,
                      [command] { return SecondsOf([&command] { Run(command); }); },
                      {}});
    }
    if (settings.python.empty()) continue;
    const auto add = [&](const std::string& name, const std::string& kind) {
      ways.push_back({name,
                      file.format,
                      [&settings, &file, kind] { return PythonSeconds(settings, file.path, kind); },
                      {}});
    };
    if (file.format == "svmlight") add("sklearn load_svmlight_file", "svmlight");
    if (file.format != "text") continue;
    add("sklearn HashingVectorizer", "hashing");
    add("sklearn CountVectorizer", "counting");
  }
  return ways;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Rates at which example files are read");
  app.add_option("--rows", settings.rows, "Rows of each file")->capture_default_str();
  app.add_option("--rounds", settings.rounds, "Rounds; medians are printed")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--directory", settings.directory, "Where the files are written")
      ->capture_default_str();
  app.add_option("--formats", settings.formats, "Formats to measure (default: all)")
      ->delimiter(',');
  app.add_option("--vw", settings.vw, "Vowpal Wabbit's program, to measure beside ours");
  app.add_option("--python", settings.python, "A Python with scikit-learn, likewise");
  CLI11_PARSE(app, argc, argv);
  const std::vector<File> files = MakeFiles(settings);
  std::vector<Way> ways = MakeWays(settings, files);
  for (int round = 0; round < settings.rounds; ++round) {
    for (Way& way : ways) way.seconds.push_back(way.measure());
  }
  std::puts("| format | reader | rows/s | MB/s | of the line scan |");
  std::puts("|---|---|---|---|---|");
  double scan = 0;
  for (const Way& way : ways) {
    const double seconds = Median(way.seconds);
    if (way.name == "plain line scan") scan = seconds;
    const auto bytes =
        static_cast<double>(std::filesystem::file_size(settings.directory + "/rows." + way.format));
    std::printf("| %s | %s | %.0f | %.0f | %.3f |\n", way.format.c_str(), way.name.c_str(),
                static_cast<double>(settings.rows) / seconds, bytes / seconds / 1e6,
                scan / seconds);
  }
  return 0;
}

}  // namespace
}  // namespace perceptrond::client

int main(int argc, char** argv) { return perceptrond::client::Main(argc, argv); }
