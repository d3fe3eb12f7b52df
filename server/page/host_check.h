// Which names of the endpoint a browser may ask it by.
#pragma once

#include <string>
#include <vector>

#include "server/page/http.h"

namespace perceptrond {

// Answers as `handler` where the Host header is an address, "localhost", one of `names`, whatever
// their case, or absent; 403 for any other: its owner could have made it resolve to this machine
// (DNS rebinding), and for a browser the owner's page and what is served here would have the same
// origin.
HttpHandler WithHostCheck(std::vector<std::string> names, HttpHandler handler);

}  // namespace perceptrond
