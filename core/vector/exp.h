// e^x with the same bits on every machine: a C library may choose the last digit, this does not.
#pragma once

namespace perceptrond {

// Within 1e-15 of e^x, relatively; 0 below -745 and infinity above 709.7, as in <cmath>; NaN for
// NaN. For rules that replay and replicas must repeat to the bit.
double DeterministicExp(double x);

// 1 / (1 + e^-x), by the same means.
double DeterministicSigmoid(double x);

}  // namespace perceptrond
