// Every method of the API: the request that names a model, who may call it, and what it answers
// when there is none.
#pragma once

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace perceptrond::testing {

struct ApiMethod {
  const char* path;
  // In text format; $ is the model's name, and % its id.
  const char* request;
  // The first of the principals reader, trainer, keeper and admin (access_fixture.h) that may call
  // the method; those after it may, too.
  const char* caller;
  // An alias may stand for the model.
  bool takes_alias;
  // The outcome if no model or alias has the name.
  const char* absent;

  std::string Request(absl::string_view name) const {
    return absl::StrReplaceAll(request, {{"$", name}, {"%", absl::StripPrefix(name, "models/")}});
  }
  bool NamesModel() const {
    return absl::string_view(request).find_first_of("$%") != absl::string_view::npos;
  }
};

inline constexpr char kNoModel[] = "NOT_FOUND MODEL_NOT_FOUND";
inline constexpr char kNoAlias[] = "NOT_FOUND ALIAS_NOT_FOUND";

inline constexpr ApiMethod kApiMethods[] = {
    {"ModelService/CreateModel", "model_id: '%'", "keeper", false,
     "INVALID_ARGUMENT INVALID_FIELD model.feature_space"},
    {"ModelService/GetModel", "name: '$'", "reader", true, kNoModel},
    {"ModelService/ListWeights", "model: '$'", "reader", true, kNoModel},
    {"ModelService/ListModels", "", "reader", false, "OK"},
    {"ModelService/UpdateModel", "model { name: '$' }", "keeper", false, kNoModel},
    {"ModelService/DeleteModel", "name: '$'", "keeper", false, kNoModel},
    {"ModelService/FreezeModel", "name: '$'", "keeper", false, kNoModel},
    {"ModelService/UnfreezeModel", "name: '$'", "keeper", false, kNoModel},
    {"ModelService/WatchModel", "name: '$'", "reader", true, kNoModel},
    {"LearningService/Learn", "model: '$' examples { label: 1 }", "trainer", true, kNoModel},
    {"LearningService/LearnStream", "model: '$'", "trainer", true, kNoModel},
    {"PredictionService/Predict", "model: '$' examples {}", "reader", true, kNoModel},
    {"PredictionService/PredictStream", "model: '$'", "reader", true, kNoModel},
    {"PredictionService/Explain", "model: '$' examples {}", "reader", true, kNoModel},
    {"AnalysisService/Analyze", "model: '$'", "reader", true, kNoModel},
    {"AnalysisService/Analyze", "model: '$' replace_weights: true", "keeper", true, kNoModel},
    {"AnalysisService/ListStoredExamples", "model: '$'", "reader", true, kNoModel},
    {"AliasService/GetAlias", "name: 'aliases/%'", "reader", false, kNoAlias},
    {"AliasService/ListAliases", "", "reader", false, "OK"},
    {"AliasService/UpdateAlias", "alias { name: 'aliases/%' model: '$' } allow_missing: true",
     "keeper", false, kNoModel},
    {"AliasService/DeleteAlias", "name: 'aliases/%'", "keeper", false, kNoAlias},
    {"AliasService/ChallengeAlias", "name: 'aliases/%' challenger: '$'", "keeper", false, kNoAlias},
    {"HistoryService/CopyModel", "name: '$' new_name: '$-2'", "keeper", false, kNoModel},
    {"HistoryService/RenameModel", "name: '$' new_name: '$-2'", "keeper", false, kNoModel},
    {"HistoryService/ExportModel", "name: '$'", "reader", false, kNoModel},
    {"HistoryService/ImportModel", "new_name: '$'", "keeper", false,
     "INVALID_ARGUMENT BAD_MODEL_FILE piece"},
    {"HistoryService/CreateSnapshot", "model: '$' snapshot_id: 'k'", "keeper", false, kNoModel},
    {"HistoryService/ListSnapshots", "model: '$'", "reader", false, kNoModel},
    {"HistoryService/DeleteSnapshot", "model: '$' snapshot_id: 'k'", "keeper", false, kNoModel},
    {"HistoryService/RollBackModel", "model: '$' snapshot_id: 'k'", "keeper", false, kNoModel},
    {"BackupService/CreateBackup", "", "admin", false, "FAILED_PRECONDITION BACKUPS_OFF"},
    {"BackupService/ListBackups", "", "admin", false, "FAILED_PRECONDITION BACKUPS_OFF"},
    {"inference.GRPCInferenceService/ServerLive", "", "admin", false, "OK"},
    {"inference.GRPCInferenceService/ServerReady", "", "admin", false, "OK"},
    {"inference.GRPCInferenceService/ServerMetadata", "", "admin", false, "OK"},
    {"inference.GRPCInferenceService/ModelReady", "name: '%'", "reader", true, kNoModel},
    {"inference.GRPCInferenceService/ModelMetadata", "name: '%'", "reader", true, kNoModel},
    {"inference.GRPCInferenceService/ModelInfer", "model_name: '%'", "reader", true, kNoModel},
};

}  // namespace perceptrond::testing
