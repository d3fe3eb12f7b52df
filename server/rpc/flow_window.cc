#include "server/rpc/flow_window.h"

#include <atomic>

namespace grpc_core::chttp2 {

// As declared by gRPC's src/core/ext/transport/chttp2/transport/flow_control.h: what its tests put
// in place of the window that it computes from probes of the bandwidth. Channel arguments set the
// windows of streams alone and leave that of the connection at 64 KiB.
class TestOnlyTransportTargetWindowEstimatesMocker {
 public:
  virtual ~TestOnlyTransportTargetWindowEstimatesMocker() = default;
  virtual double ComputeNextTargetInitialWindowSizeFromPeriodicUpdate(double current) = 0;
};
extern TestOnlyTransportTargetWindowEstimatesMocker*
    g_test_only_transport_target_window_estimates_mocker;

}  // namespace grpc_core::chttp2

namespace perceptrond {
namespace {

class FlowWindow final : public grpc_core::chttp2::TestOnlyTransportTargetWindowEstimatesMocker {
 public:
  double ComputeNextTargetInitialWindowSizeFromPeriodicUpdate(double) override { return bytes; }

  std::atomic<double> bytes = 64 << 10;
};

}  // namespace

void SetFlowWindow(size_t bytes) {
  // Never deleted: gRPC's threads ask until the process ends.
  static FlowWindow* const window = new FlowWindow;
  window->bytes = static_cast<double>(bytes);
  grpc_core::chttp2::g_test_only_transport_target_window_estimates_mocker = window;
}

}  // namespace perceptrond
