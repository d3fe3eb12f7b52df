// A labelled example before a learner learns it: what the learner says of it, and what it is to
// learn.
#pragma once

#include <cstdint>

#include "core/vector/check.h"

namespace perceptrond {

// How a learner's current weights do on a labelled example.
struct Evaluation {
  // Two labels: the score s = theta . x + bias. Several classes: the margin, which is the score of
  // the example's class less the greatest of the others; infinity if no other class exists.
  double score = 0;
  // The label that the scores predict, by the tie rule; -1 while no class exists.
  int32_t predicted = 0;
  // Several classes: the best-scoring class besides the example's; -1: there is none.
  int32_t rival = -1;
  // The prediction is wrong, by the tie rule.
  bool mistake = false;
  // The rule calls for an update. Every mistake does; some rules also learn from a margin that is
  // too small.
  bool update = false;
  // The rule's own loss.
  double loss = 0;
};

// A row of a batch: checked, and evaluated if it has no error.
struct EvaluatedRow {
  ValidationCode code = ValidationCode::kNone;
  double squared_norm = 0;
  Evaluation evaluation;
};

// What an update is to learn besides the features.
struct Target {
  // -1 or +1, or the number of a class.
  int32_t label = 0;
  // Weight of the example, > 0.
  double weight = 1;
  // Examples that the model evaluated before this one. It is journaled for the learners that read
  // it (CatalogueEntry::counts_examples); the others must not.
  uint64_t age = 0;
};

}  // namespace perceptrond
