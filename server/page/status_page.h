// The status page: the models and their learning curves in a browser, without Grafana.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "core/store/store.h"
#include "server/page/http.h"
#include "server/page/model_answers.h"

namespace perceptrond {

// Serves, to GET and HEAD:
//   /                  the list of models        /models/{model}       one model
//   /api/models        the data of the list      /api/models/{model}   the data of one model
//   /compare           learning curves of several models in one plot
//   /assets/{file}     the page's own files
// 400 for an invalid model name; 404 for an unknown path or model; 405 for other methods; 503 while
// kMaxActiveRequests requests for data are in progress. docs/status_page.md describes the JSON.
//
// Thread contract: safe for any number of threads.
class StatusPage {
 public:
  // The most requests for data at one time, so that threads of the endpoint are left for scrapes.
  static constexpr int kMaxActiveRequests = 8;

  // As ModelAnswers.
  StatusPage(Store& store, std::function<bool()> draining);

  HttpAnswer Answer(const HttpRequest& request);

 private:
  HttpAnswer Get(const HttpRequest& request);
  // `path` is the part after "/api/".
  HttpAnswer Api(const HttpRequest& request, absl::string_view path);
  HttpAnswer Page(const HttpRequest& request, const std::string& file, int status) const;

  ModelAnswers models_;
  // The embedded files by name.
  std::map<absl::string_view, EmbeddedFile> files_;
  std::atomic<int> active_requests_ = 0;
};

}  // namespace perceptrond
