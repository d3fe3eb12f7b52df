// ExportModel and ImportModel: a model's file, sent and received in pieces.
#pragma once

#include "server/rpc/backend.h"
#include "server/rpc/call.h"

namespace perceptrond {

// Handle calls of perceptron.v1.HistoryService. The drain waits for those whose first message has
// arrived; it ends imports whose file has not arrived whole. Everything in `backend` must outlive them.
void StartExport(Call& call, const Backend& backend);
void StartImport(Call& call, const Backend& backend);

}  // namespace perceptrond
