// The server's services, one for each proto service: thin adaptors between gRPC and the store.
#pragma once

#include "absl/status/status.h"
#include "core/journal/rocksdb/backups.h"
#include "inference/inference_service.pb.h"
#include "perceptron/v1/backup_service.pb.h"

namespace perceptrond {

class AnalysisQueue;
class Router;
class Store;
struct Backend;

// Each adds its methods to the router, whose calls everything in `backend` must outlive.

// perceptron.v1.ModelService.
void AddModelService(Router& router, const Backend& backend);
// perceptron.v1.AliasService.
void AddAliasService(Router& router, const Backend& backend);
// perceptron.v1.HistoryService.
void AddHistoryService(Router& router, const Backend& backend);
// perceptron.v1.LearningService.
void AddLearningService(Router& router, const Backend& backend);
// perceptron.v1.PredictionService.
void AddPredictionService(Router& router, const Backend& backend);
// perceptron.v1.AnalysisService. The queue must outlive the calls, too.
void AddAnalysisService(Router& router, const Backend& backend, AnalysisQueue& queue);
// perceptron.v1.BackupService.
void AddBackupService(Router& router, const Backend& backend);
::perceptron::v1::Backup ToProto(const Backup& backup);
// inference.GRPCInferenceService, of the Open Inference Protocol.
void AddInferenceService(Router& router, const Backend& backend);

// The method ModelInfer of the Open Inference Protocol, without the transport. The response comes
// from one revision of the model. Errors are those that proto/inference/inference_service.proto
// lists. Any thread.
absl::Status Infer(Store& store, const ::inference::ModelInferRequest& request,
                   ::inference::ModelInferResponse& response);

}  // namespace perceptrond
