// The command line of `perceptronctl draw`.
#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <memory>

#include "client/ctl/command.h"
#include "client/ctl/draw/draw_run.h"

namespace perceptrond::client {
namespace {

// What -o takes everywhere else.
std::string CheckFileName(const std::string& file) {
  if (file != "json" && file != "text") return "";
  return "a picture is SVG: -o names its file, as -o " + file + ".svg";
}

void AddPlaneOptions(CLI::App* command, DrawRunOptions* options) {
  command
      ->add_option(
          "--x", options->plane.x,
          "The feature along the x axis: its name, or its number from 0 as 'get --weights' "
          "has it; by default the first of two")
      ->check(Utf8());
  command->add_option("--y", options->plane.y, "The feature along the y axis")->check(Utf8());
  command
      ->add_option("--at", options->plane.at,
                   "FEATURE=VALUE, any number of times: where the plane lies in the other features "
                   "(default 0 each)")
      ->check(Utf8())
      ->take_all();
  const auto range = [&](const char* flag, std::vector<double>* to, const char* help) {
    command->add_option(flag, *to, help)->expected(2);
  };
  range("--x-range", &options->x_range, "LEAST GREATEST of the x axis (default: the examples')");
  range("--y-range", &options->y_range, "LEAST GREATEST of the y axis");
}

int Run(const Globals& globals, const DrawRunOptions& options) {
  for (const std::vector<double>* range : {&options.x_range, &options.y_range}) {
    if (range->size() != 2) continue;
    const double size = (*range)[1] - (*range)[0];
    if (!(size > 0) || !std::isfinite(size))
      return PrintUsageError("draw: a range goes from its least to its greatest number");
    constexpr double kMost = std::numeric_limits<float>::max();
    if ((*range)[0] < -kMost || (*range)[1] > kMost)
      return PrintUsageError("draw: a range lies within what a feature can be, ±3.4e38");
  }
  return DrawRun(globals, options).Run();
}

}  // namespace

void AddDraw(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<DrawRunOptions>();
  CLI::App* command = app->add_subcommand("draw", "Draw a model as SVG");
  command->add_option("NAME", options->name, "spam, or models/spam")->required()->check(Utf8());
  command->add_option("FILE", options->input.files,
                      "Files with examples to draw, by default those that the model retains; - is "
                      "standard input");
  command->add_option("-o,--output", options->file, "The file to write; by default standard output")
      ->type_name("FILE")
      ->check(CheckFileName);
  command
      ->add_option("--what", options->what,
                   "boundary: examples, boundary and margin in the plane of two features; weights: "
                   "the same in the plane of their weights; curves: mistakes, norm, margin and "
                   "error over the revisions")
      ->check(CLI::IsMember({"boundary", "weights", "curves"}))
      ->capture_default_str();
  AddPlaneOptions(command, options.get());
  command->add_flag("--log", options->logarithmic, "curves: revisions on a logarithmic scale");
  command->add_option("--limit", options->limit, "Draw at most so many examples, the first ones")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--title", options->title, "The picture's title")->check(Utf8());
  AddInputOptions(command, &options->input);
  command->footer(
      "Pictures follow the reader's light or dark scheme. docs/pictures.md shows one of each.\n"
      "Wrong examples are ringed. The margin lines go through the closest example that is right; "
      "they\n"
      "are drawn where all examples lie in the plane. What is not known is a gap in a curve. Of a "
      "model of\n"
      "several classes only curves are drawn: boundary and weights show two labels.\n"
      "Formats are those of 'perceptronctl learn --help'.\n"
      "\n"
      "Examples:\n"
      "  perceptronctl draw xor xor.svm --index-base 1 -o xor.svg\n"
      "  perceptronctl draw iris iris.svm --index-base 1 --x 2 --y 3 -o iris.svg\n"
      "  perceptronctl draw spam --what curves --log -o spam.svg");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
