// The model of a bench: an existing one, or a temporary one that is deleted after the run.
#pragma once

#include <string>

#include "client/client.h"
#include "client/ctl/bench/options.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"

namespace perceptrond::client {

// Threads: one.
class BenchModel {
 public:
  // Both arguments must outlive this.
  BenchModel(const Globals& globals, const BenchOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}
  ~BenchModel() { Delete(); }
  BenchModel(const BenchModel&) = delete;
  BenchModel& operator=(const BenchModel&) = delete;

  // Determines the model's name and the shape of its examples, without creating anything.
  Outcome Find();
  // Creates the model if it is temporary.
  Outcome Create();
  // Deletes the model if it was created; prints an error if that fails.
  void Delete();

  // Valid after Find().
  const std::string& name() const { return name_; }
  const SyntheticRowsOptions& shape() const { return shape_; }

 private:
  Outcome ReadShape(const v1::Model& model);

  const Globals& globals_;
  const BenchOptions& options_;
  const Client client_;
  std::string name_;
  SyntheticRowsOptions shape_;
  bool created_ = false;
};

}  // namespace perceptrond::client
