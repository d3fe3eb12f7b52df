// One run of `perceptronctl draw`: asks the server for what a picture shows, and writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/ctl/command.h"
#include "client/ctl/draw/examples.h"
#include "client/ctl/draw/plane.h"
#include "client/ctl/input.h"
#include "client/ctl/output.h"
#include "client/draw/boundary.h"
#include "client/draw/weights.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

struct DrawRunOptions {
  std::string name;
  InputOptions input;
  // Empty or "-": standard output.
  std::string file;
  std::string what = "boundary";
  PlaneFlags plane;
  // Two numbers each, or none.
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
  std::string Doing() const;
  std::string Title(const std::string& what) const;
  // "perceptron at revision 7, 40 examples, 2 wrong".
  std::string Subtitle(const std::vector<RowScore>& scores) const;
  Outcome Unusable(const absl::Status& status) const;

  Outcome Load(v1::ModelView view);
  // Rows of the input, or without files those that the model retains.
  Outcome ReadRows();
  Outcome ReadRetained();
  Outcome ReadPlane();
  // Where the examples live that the model is sent.
  const v1::FeatureSpace& ExampleSpace() const;
  // That the plane's features are some, and such as examples have.
  Outcome CheckNames() const;

  Outcome DrawCurves();
  Outcome DrawBoundary();
  Outcome DrawWeights();
  // Empty: its weights can be drawn.
  std::string WhyNoWeights() const;
  Window ChooseWindow(const std::vector<DrawnExample>& examples) const;
  // The margin lines, where they would be true.
  void AddMargin(BoundaryPicture* picture) const;
  // The model's weights of the plane's two features.
  absl::StatusOr<Point> AskWeights() const;
  Outcome WritePicture(const std::string& svg, const std::string& summary) const;

  const DrawRunOptions& options_;
  const Client client_;
  Scorer scorer_;
  Complaints complaints_{options_.input.skip_bad_lines};
  v1::Model model_;
  std::vector<std::string> label_names_;
  std::vector<Row> rows_;
  std::vector<RowScore> scores_;
  bool limited_ = false;
  FeaturePlane plane_;
};

}  // namespace perceptrond::client
