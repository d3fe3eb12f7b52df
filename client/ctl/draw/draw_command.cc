// The command line of `perceptronctl draw`.
#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <memory>

#include "client/ctl/command.h"
#include "client/ctl/draw/draw_run.h"

namespace perceptrond::client {
namespace {

// Rejects the values that -o has in the other subcommands.
std::string CheckFileName(const std::string& file) {
  if (file != "json" && file != "text") return "";
  return "-o names the SVG file, for example -o " + file + ".svg";
}

void AddPlaneOptions(CLI::App* command, DrawRunOptions* options) {
  command
      ->add_option(
          "--x", options->plane.x,
          "Feature of the x axis: its name, or its index from 0 as in 'get --weights' (default: "
          "the first, if there are two)")
      ->check(Utf8());
  command
      ->add_option("--y", options->plane.y,
                   "Feature of the y axis (default: the second, if there are two)")
      ->check(Utf8());
  command
      ->add_option("--at", options->plane.at,
                   "FEATURE=VALUE: value of another feature in the plane drawn; may be repeated "
                   "(default: all others are 0)")
      ->check(Utf8())
      ->take_all();
  const auto range = [&](const char* flag, std::vector<double>* to, const char* help) {
    command->add_option(flag, *to, help)->expected(2);
  };
  range("--x-range", &options->x_range, "MIN MAX of the x axis (default: those of the examples)");
  range("--y-range", &options->y_range, "MIN MAX of the y axis (default: those of the examples)");
}

int Run(const Globals& globals, const DrawRunOptions& options) {
  for (const std::vector<double>* range : {&options.x_range, &options.y_range}) {
    if (range->size() != 2) continue;
    const double size = (*range)[1] - (*range)[0];
    if (!(size > 0) || !std::isfinite(size))
      return PrintUsageError(
          "draw: --x-range and --y-range take the minimum first, then the maximum");
    constexpr double kMost = std::numeric_limits<float>::max();
    if ((*range)[0] < -kMost || (*range)[1] > kMost)
      return PrintUsageError("draw: --x-range and --y-range must be within float32, ±3.4e38");
  }
  return DrawRun(globals, options).Run();
}

}  // namespace

void AddDraw(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<DrawRunOptions>();
  CLI::App* command = app->add_subcommand("draw", "Draw a model as an SVG picture");
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  command->add_option(
      "FILE", options->input.files,
      "Files of examples to draw; - is standard input (default: the examples the model "
      "stores)");
  command->add_option("-o,--output", options->file, "SVG file to write (default: standard output)")
      ->type_name("FILE")
      ->check(CheckFileName);
  command
      ->add_option("--what", options->what,
                   "boundary: examples, boundary and margin, or for several classes the regions of "
                   "the classes, in the plane of two features; weights: the same in the plane of "
                   "their weights; learning-curve: mistakes, norm, margin and error by revision")
      ->check(CLI::IsMember({"boundary", "weights", "learning-curve"}))
      ->capture_default_str();
  command
      ->add_option("--label", options->label,
                   "weights, several classes: the class whose weights are drawn")
      ->type_name("CLASS")
      ->check(Utf8());
  AddPlaneOptions(command, options.get());
  command->add_flag("--log", options->logarithmic,
                    "learning-curve: logarithmic scale of revisions");
  command->add_option("--limit", options->limit, "Draw at most this many examples, the first ones")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--title", options->title, "Title of the picture")->check(Utf8());
  AddInputOptions(command, &options->input);
  command->footer(
      R"(Misclassified examples have a ring. The margin lines go through the closest correct
example; they are drawn if all examples lie in the plane. Weights of a class are drawn with those of
the other classes as they are. Gaps in a learning curve are unknown values. Pictures follow the
viewer's light or dark scheme; docs/cli.md shows one of each kind. 'perceptronctl learn --help'
describes the formats.

Examples:
  perceptronctl draw xor xor.svm --index-base 1 -o xor.svg
  perceptronctl draw iris iris.svm --index-base 1 --x 2 --y 3 -o iris.svg
  perceptronctl draw iris iris.svm --index-base 1 --x 2 --y 3 --what weights --label 0
  perceptronctl draw spam --what learning-curve --log -o spam.svg)");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
