// The model of a bench: one there is, or one made for the run and deleted after it.
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
  // Both must outlive this.
  BenchModel(const Globals& globals, const BenchOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}
  ~BenchModel() { Delete(); }
  BenchModel(const BenchModel&) = delete;
  BenchModel& operator=(const BenchModel&) = delete;

  // Which it is, and the shape of its examples. Makes nothing yet.
  Outcome Find();
  // If it is to be made.
  Outcome Make();
  // If it was made. Complains where that cannot be.
  void Delete();

  // After Find().
  const std::string& name() const { return name_; }
  const SyntheticRowsOptions& shape() const { return shape_; }

 private:
  Outcome ReadShape(const v1::Model& model);

  const Globals& globals_;
  const BenchOptions& options_;
  const Client client_;
  std::string name_;
  SyntheticRowsOptions shape_;
  bool made_ = false;
};

}  // namespace perceptrond::client
