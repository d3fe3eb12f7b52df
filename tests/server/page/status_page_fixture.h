// A status page over a store in memory, asked without HTTP.
#pragma once

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/journal/memory_journal.h"
#include "server/page/status_page.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/status.h"
#include "tests/support/traffic.h"

namespace perceptrond::testing {

inline std::string Header(const HttpAnswer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return "";
}

class StatusPageTest : public ::testing::Test {
 protected:
  StatusPageTest() { Open(); }

  void Open() {
    page_.reset();
    store_.reset();
    store_ =
        std::make_unique<Store>(std::make_unique<JournalDecorator>(journal_), Store::Options());
    page_ = std::make_unique<StatusPage>(*store_, [this] { return draining_(); });
  }
  void Create(::perceptron::v1::Model settings) {
    ASSERT_OK(store_->Create(std::move(settings), "", false).status());
  }
  // Learns random labels: updates never end.
  void LearnNoise(const std::string& name, int examples) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (int i = 0; i < examples; ++i) {
      const Columns row =
          Columns().AddDense({normal(random), normal(random)}, random() % 2 == 0 ? 1 : -1);
      ASSERT_OK(Send(*store_, name, "p", row.batch()).status);
    }
  }

  HttpAnswer Ask(const std::string& path,
                 std::vector<std::pair<std::string, std::string>> query = {}) {
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    request.query = std::move(query);
    return page_->Answer(request);
  }
  template <typename Message>
  Message Json(const HttpAnswer& answer) {
    EXPECT_EQ(Header(answer, "Content-Type"), "application/json; charset=utf-8");
    Message message;
    const auto status = google::protobuf::util::JsonStringToMessage(answer.body, &message);
    EXPECT_TRUE(status.ok()) << status << "\n" << answer.body;
    return message;
  }
  ::perceptron::page::v1::ModelList List(
      std::vector<std::pair<std::string, std::string>> query = {}) {
    return Json<::perceptron::page::v1::ModelList>(Ask("/api/models", std::move(query)));
  }
  ::perceptron::page::v1::ModelDetail Detail(
      const std::string& id, std::vector<std::pair<std::string, std::string>> query = {}) {
    return Json<::perceptron::page::v1::ModelDetail>(Ask("/api/models/" + id, std::move(query)));
  }
  static std::vector<std::string> Names(const ::perceptron::page::v1::ModelList& list) {
    std::vector<std::string> names;
    for (const auto& entry : list.models()) names.push_back(entry.model().name());
    return names;
  }

  const std::shared_ptr<Journal> journal_ = std::make_shared<MemoryJournal>();
  std::unique_ptr<Store> store_;
  std::function<bool()> draining_ = [] { return false; };
  std::unique_ptr<StatusPage> page_;
};

}  // namespace perceptrond::testing
