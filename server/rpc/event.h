// What the tags of a completion queue point to.
#pragma once

namespace perceptrond {

class Event {
 public:
  // false: what was asked for did not come about.
  virtual void Happened(bool ok) = 0;

 protected:
  ~Event() = default;
};

}  // namespace perceptrond
