// Reads XML as a test needs it: whether it is well formed, and which elements it has.
#pragma once

#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perceptrond::testing {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  // Its own text, entities replaced.
  std::string text;
};

// The elements in the order they begin; absent if the document is not well formed. Knows elements,
// attributes in double quotes and the five entities; nothing else may stand in it.
class XmlReader {
 public:
  static std::optional<std::vector<XmlElement>> Read(std::string_view document) {
    XmlReader reader(document);
    if (!reader.Element()) return std::nullopt;
    while (reader.at_ < document.size() && std::isspace(document[reader.at_]) != 0) ++reader.at_;
    if (reader.at_ != document.size()) return std::nullopt;
    return reader.elements_;
  }

 private:
  explicit XmlReader(std::string_view document) : document_(document) {}

  bool Take(std::string_view text) {
    if (document_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  std::string Name() {
    const size_t begin = at_;
    while (at_ < document_.size() &&
           (std::isalnum(static_cast<unsigned char>(document_[at_])) != 0 ||
            std::string_view("-:_").find(document_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    return std::string(document_.substr(begin, at_ - begin));
  }
  // Up to one of `ends`, which stays.
  bool Text(std::string_view ends, std::string* text) {
    constexpr std::pair<const char*, char> kEntities[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    while (at_ < document_.size() && ends.find(document_[at_]) == std::string_view::npos) {
      const auto byte = static_cast<unsigned char>(document_[at_]);
      if (byte < 0x20 && byte != '\n' && byte != '\t') return false;
      if (byte == '<') return false;
      if (byte != '&') {
        text->push_back(document_[at_++]);
        continue;
      }
      bool known = false;
      for (const auto& [entity, character] : kEntities) {
        if (known || !Take(entity)) continue;
        text->push_back(character);
        known = true;
      }
      if (!known) return false;
    }
    return at_ < document_.size();
  }
  bool Attributes(XmlElement* element) {
    while (Take(" ")) {
      const std::string key = Name();
      std::string value;
      if (key.empty() || !Take("=\"") || !Text("\"", &value) || !Take("\"")) return false;
      if (!element->attributes.emplace(key, value).second) return false;
    }
    return true;
  }
  bool Element() {
    XmlElement element;
    if (!Take("<")) return false;
    element.name = Name();
    if (element.name.empty() || !Attributes(&element)) return false;
    const size_t index = elements_.size();
    elements_.push_back(element);
    if (Take("/>")) return true;
    if (!Take(">")) return false;
    while (true) {
      if (!Text("<", &elements_[index].text)) return false;
      if (Take("</")) return Take(element.name) && Take(">");
      if (!Element()) return false;
    }
  }

  const std::string_view document_;
  size_t at_ = 0;
  std::vector<XmlElement> elements_;
};

}  // namespace perceptrond::testing
