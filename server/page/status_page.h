// The status page: the models and their curves for whoever has a browser and no Grafana.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "core/model/store.h"
#include "server/page/embedded.h"
#include "server/page/http.h"
#include "server/page/model_answers.h"

namespace perceptrond {

// Serves, to GET and HEAD:
//   /                  the list of models        /models/{model}       one model
//   /api/models        what the list shows       /api/models/{model}   what a model's page shows
//   /assets/{file}     the page's own files
// 400 for a name that no model can have; 403 for a Host that is a name, where only this machine can
// reach the page; 404 for what is not there, 405 for other methods, 503 while kMostAtOnce answers
// from the models are being made. docs/status_page.md says what the JSON holds.
//
// Thread contract: any number of threads at once.
class StatusPage {
 public:
  // Requests for JSON at one time. Whatever they cost, they leave the endpoint's other threads to
  // scrapes.
  static constexpr int kMostAtOnce = 8;

  // `loopback`: only this machine can reach it. The rest as ModelAnswers.
  StatusPage(Store& store, std::function<bool()> draining, bool loopback);

  HttpAnswer Answer(const HttpRequest& request);

 private:
  HttpAnswer Get(const HttpRequest& request);
  // `path` is what stands behind "/api/".
  HttpAnswer Api(const HttpRequest& request, absl::string_view path);
  HttpAnswer Page(const HttpRequest& request, const std::string& file, int status) const;

  const bool loopback_;
  ModelAnswers models_;
  // By name.
  std::map<absl::string_view, EmbeddedFile> files_;
  std::atomic<int> under_way_ = 0;
};

}  // namespace perceptrond
