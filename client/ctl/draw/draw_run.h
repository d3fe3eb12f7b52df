// One run of `perceptronctl draw`: reads the data of a picture from the server and writes the SVG.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/ctl/command.h"
#include "client/ctl/draw/examples.h"
#include "client/ctl/draw/plane.h"
#include "client/ctl/input.h"
#include "client/ctl/output.h"
#include "client/draw/pictures.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

struct DrawRunOptions {
  std::string name;
  InputOptions input;
  // Empty or "-": standard output.
  std::string file;
  std::string what = "boundary";
  // Weights of several classes: the class.
  std::string label;
  PlaneFlags plane;
  // Minimum and maximum, or empty.
  std::vector<double> x_range;
  std::vector<double> y_range;
  bool logarithmic = false;
  uint64_t limit = 2000;
  std::string title;
};

// Threads: one.
class DrawRun {
 public:
  // Both must outlive the run.
  DrawRun(const Globals& globals, const DrawRunOptions& options)
      : options_(options), client_(globals.Connect()), scorer_(client_, options.name) {}

  // Returns the exit code.
  int Run();

 private:
  std::string ErrorPrefix() const;
  std::string Title(const std::string& what) const;
  // "perceptron at revision 7, 40 examples, 2 wrong".
  std::string Subtitle() const;
  // Whether row i has a label and is an error in a summary of predictions.
  bool IsWrong(size_t i) const;
  Outcome InvalidInput(const absl::Status& status) const;

  Outcome Load(v1::ModelView view);
  // Reads the rows of the input; without files those that the model stores.
  Outcome ReadRows();
  Outcome ReadStored();
  Outcome ReadPlane();
  // Checks that examples have the features of the plane.
  Outcome CheckNames() const;

  Outcome DrawLearningCurve();
  Outcome DrawPlane();
  Outcome DrawBoundary();
  Outcome DrawPlaneOfWeights();
  Outcome DrawWeights();
  // Checks that --label is given where a class has to be chosen, and nowhere else.
  Outcome CheckLabel() const;

  // Several classes (class_pictures.cc). NumberLabels replaces the names of the rows' classes by
  // their numbers, or kUnknownClass.
  void NumberLabels();
  Outcome DrawRegions();
  Outcome DrawClassWeights();
  // The picture's classes, as many as have a colour.
  absl::Status AddRegions(RegionsPicture* picture);
  // Why the model has no picture of weights; empty if it has one.
  std::string WeightsNotDrawable() const;
  Rectangle ChooseRectangle(const std::vector<DrawnExample>& examples) const;
  // Adds the margin lines, if they are defined.
  void AddMargin(BoundaryPicture* picture) const;
  // Reads the model's weights of the two features; of several classes those of one.
  absl::StatusOr<Point> ReadWeights(std::optional<int32_t> number = std::nullopt) const;
  Outcome WritePicture(const std::string& svg, const std::string& summary) const;

  const DrawRunOptions& options_;
  const Client client_;
  Scorer scorer_;
  RowErrors row_errors_{options_.input.skip_bad_lines};
  v1::Model model_;
  bool multiclass_ = false;
  std::vector<std::string> label_names_;
  std::vector<Row> rows_;
  std::vector<RowScore> scores_;
  bool limited_ = false;
  FeaturePlane plane_;
};

}  // namespace perceptrond::client
