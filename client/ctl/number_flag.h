// Numbers on the command line.
#pragma once

namespace CLI {
class Validator;
}  // namespace CLI

namespace perceptrond::client {

// A number from `least` to `most`, both finite. CLI::Range lets nan pass.
CLI::Validator Between(double least, double most);

}  // namespace perceptrond::client
