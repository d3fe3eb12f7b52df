// Runs calls on other servers of the fleet: each message is passed on as it is, in both directions,
// one at a time, so that a slow side holds the other back. Meanwhile it is bounded and counted as one that stays here.
#pragma once

#include <cstdint>

#include "server/fleet/writer_calls.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"

namespace perceptrond {

struct Destination;
struct FollowedRows;

enum class RelayKind : uint8_t {
  // It goes on when the drain begins.
  kCall,
  // It ends when the drain begins.
  kStream,
  // It ends when the drain begins, unless the client has sent all; each of its messages must arrive in the time that a
  // request may take.
  kUpload,
};

// Runs the call there. Examples to learn
// count as forwarded in `rows`, and for the caller's principal, which may be above its limit:
// RESOURCE_EXHAUSTED (RATE_LIMITED). Everything must outlive the call.
void RunRelay(WriterCalls& calls, const Backend& backend, Call& call, const Destination& to,
              RelayKind kind, FollowedRows& rows);

}  // namespace perceptrond
