// Settings under which what a rule keeps fills up, goes and turns over within a few examples.
#pragma once

#include <string>

#include "tests/support/learners.h"

namespace perceptrond::testing {

// Whether the learner keeps anything that could be so little.
inline bool CanBeTight(const std::string& learner) {
  return HasSetting(learner, "mini_batch") || HasSetting(learner, "budget") ||
         HasSetting(learner, "ratchet_examples");
}

// So little that batches end and rows go; another kernel than the default.
inline void Tighten(v1::Learner& learner) {
  SetCount(learner, "mini_batch", 5);
  SetCount(learner, "budget", 4);
  SetCount(learner, "ratchet_examples", 6);
  if (learner.has_kernel_perceptron())
    learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial()->set_degree(3);
}

}  // namespace perceptrond::testing
