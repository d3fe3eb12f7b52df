// Environment variables that look like settings of the server and are none.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace perceptrond {

// Variables that begin with PERCEPTROND_, are set, and are not in `known`, in the order of their
// names. Leaves out those of perceptronctl, and those that Kubernetes sets in every container for a
// Service named perceptrond or perceptrond-NAME. Not while another thread sets a variable.
std::vector<std::string> UnknownVariables(const std::set<std::string>& known);

}  // namespace perceptrond
