// The members of the learner auto (core/learner/weighted_majority.h): which rules, with which
// settings.
#pragma once

#include <cstddef>
#include <string>

#include "core/learner/settings.h"

namespace perceptrond {

inline constexpr size_t kMembers = 8;

// Member m < kMembers of a learner of these settings: it has their ties, bias, start and classes.
LearnerSettings MemberSettings(size_t m, const LearnerSettings& whole);

// Its rule and what is set in it: "arow, regularization 0.1".
std::string MemberName(size_t m);

}  // namespace perceptrond
