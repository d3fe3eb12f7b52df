#include "server/services/inference_service.h"

#include "absl/strings/str_cat.h"
#include "server/rpc/model_name.h"
#include "server/rpc/quick.h"
#include "server/rpc/router.h"
#include "server/rpc/unary.h"
#include "server/services/inference.h"

namespace perceptrond {
namespace {

namespace oip = ::inference;

template <typename Request>
bool Always(Store& /*store*/, const Request& /*request*/) {
  return true;
}

absl::Status Live(Store& /*store*/, const Drain& /*drain*/,
                  const oip::ServerLiveRequest& /*request*/, oip::ServerLiveResponse& response) {
  response.set_live(true);
  return absl::OkStatus();
}

absl::Status Ready(Store& /*store*/, const Drain& drain, const oip::ServerReadyRequest& /*request*/,
                   oip::ServerReadyResponse& response) {
  response.set_ready(!drain.draining());
  return absl::OkStatus();
}

absl::Status ModelReady(Store& store, const Drain& drain, const oip::ModelReadyRequest& request,
                        oip::ModelReadyResponse& response) {
  absl::Status status = SayWhetherReady(store, request, response);
  if (drain.draining()) response.set_ready(false);
  return status;
}

absl::Status Metadata(Store& /*store*/, const oip::ServerMetadataRequest& /*request*/,
                      oip::ServerMetadataResponse& response) {
  DescribeServer(response);
  return absl::OkStatus();
}

bool IsQuickInfer(Store& store, const oip::ModelInferRequest& request) {
  return IsQuick(store, absl::StrCat(kModelCollection, request.model_name()));
}

}  // namespace

void AddInferenceService(Router& router, const Backend& backend) {
  const UnaryMethods unary(backend);
  router.AddService("inference.GRPCInferenceService", {{"ServerLive", unary(Live, Always)},
                                                       {"ServerReady", unary(Ready, Always)},
                                                       {"ModelReady", unary(ModelReady)},
                                                       {"ServerMetadata", unary(Metadata, Always)},
                                                       {"ModelMetadata", unary(DescribeModel)},
                                                       {"ModelInfer", unary(Infer, IsQuickInfer)}});
}

}  // namespace perceptrond
