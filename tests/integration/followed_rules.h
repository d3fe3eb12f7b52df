// Models that the tests of followed streams learn: each rule, and what may change how a row is learned.
#pragma once

#include <vector>

#include "tests/integration/followed_streams_fixture.h"

namespace perceptrond::testing {

inline std::vector<Rule> LearnerRules() {
  return {
      {.name = "perceptron", .set = [](v1::Model&) {}},
      {.name = "averaged",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_averaged(); }},
      {.name = "pocket",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_pocket(); }},
      {.name = "voted",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_voted(); },
       .weights = false},
      {.name = "margin_perceptron",
       .set =
           [](v1::Model& model) {
             model.mutable_learner()->mutable_margin_perceptron()->set_margin_slack(0.5);
           }},
      {.name = "passive_aggressive",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_passive_aggressive(); }},
      {.name = "passive_aggressive_i",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_passive_aggressive_i(); }},
      {.name = "passive_aggressive_ii",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_passive_aggressive_ii(); }},
      {.name = "arow", .set = [](v1::Model& model) { model.mutable_learner()->mutable_arow(); }},
      {.name = "soft_confidence_weighted",
       .set =
           [](v1::Model& model) { model.mutable_learner()->mutable_soft_confidence_weighted(); }},
      {.name = "logistic_regression",
       .set =
           [](v1::Model& model) {
             model.mutable_learner()->mutable_logistic_regression()->set_update_threshold(0.25);
           }},
      {.name = "kernel",
       .set =
           [](v1::Model& model) {
             model.mutable_learner()->mutable_kernel_perceptron()->set_budget(200);
           },
       .weights = false},
      {.name = "automatic",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_auto_(); },
       .weights = false},
      {.name = "names", .set = [](v1::Model&) {}, .named = true},
      {.name = "drift", .set = [](v1::Model&) {}, .drifts = true},
      // Each row is an update.
      {.name = "logistic_regression_without_threshold",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_logistic_regression(); },
       .evaluated_anywhere = false},
      // What the writer alone can do.
      {.name = "sample",
       .set = [](v1::Model& model) { model.mutable_stored_examples()->set_max_sample(10); },
       .evaluated_anywhere = false},
      {.name = "composition",
       .set = [](v1::Model&) {},
       .evaluated_anywhere = false,
       .components = 6},
  };
}

}  // namespace perceptrond::testing
