// "Did you mean": the known word that a mistyped one most likely stands for.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace perceptrond {

// Returns the candidate with the smallest edit distance to `word` (insertion, deletion or
// replacement of a byte, exchange of two neighbours); of equal ones the first. Empty if none is
// within a third of the word's length, at least 1: a suggestion that is far off misleads.
// O(bytes of the word * bytes of the candidates). Threads: any.
std::string SuggestWord(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace perceptrond
