#include "client/format/json_example.h"

#include <charconv>
#include <system_error>

#include "client/format/format.h"
#include "client/format/scan.h"
#include "core/vector/name.h"

namespace perceptrond::client {
namespace {

class UsualJson {
 public:
  UsualJson(std::string_view line, Row* row, JsonTarget* target)
      : p_(line.data()), end_(line.data() + line.size()), row_(*row), target_(*target) {}

  bool Parse() {
    const auto field = [this](std::string_view key) { return ParseField(key); };
    return Object(field) && AtEnd();
  }

 private:
  void SkipSpace() {
    while (p_ != end_ && (*p_ == ' ' || *p_ == '\t')) ++p_;
  }
  bool AtEnd() {
    SkipSpace();
    return p_ == end_;
  }
  // Skips space and `c`, if that is next.
  bool Take(char c) {
    SkipSpace();
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }

  // An object, whose values `field` parses, given their keys.
  template <typename Field>
  bool Object(const Field& field) {
    if (!Take('{')) return false;
    if (Take('}')) return true;
    do {
      std::string_view key;
      if (!String(&key) || !Take(':') || !field(key)) return false;
    } while (Take(','));
    return Take('}');
  }

  // An array, whose elements `element` parses.
  template <typename Element>
  bool Array(const Element& element) {
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      if (!element()) return false;
    } while (Take(','));
    return Take(']');
  }

  // A string without escapes.
  bool String(std::string_view* text) {
    if (!Take('"')) return false;
    const char* const begin = p_;
    unsigned char above_ascii = 0;
    while (p_ != end_ && *p_ != '"') {
      const auto c = static_cast<unsigned char>(*p_++);
      if (c < 0x20 || c == '\\') return false;
      above_ascii |= c & 0x80;
    }
    if (p_ == end_) return false;
    *text = std::string_view(begin, static_cast<size_t>(p_++ - begin));
    return above_ascii == 0 || IsValidUtf8(*text);
  }

  // Whether a number in JSON's grammar begins here, unlike "+1", "01" and ".5".
  bool NumberBegins() {
    SkipSpace();
    const char* digit = p_;
    if (digit != end_ && *digit == '-') ++digit;
    if (digit == end_ || !IsDigit(*digit)) return false;
    return *digit != '0' || digit + 1 == end_ || !IsDigit(digit[1]);
  }
  // Whether the number ends here, unlike "1." and "1x".
  bool NumberEnds() const {
    if (p_ == end_ || !IsDigit(p_[-1])) return false;
    return *p_ == ',' || *p_ == ']' || *p_ == '}' || *p_ == ' ' || *p_ == '\t';
  }
  bool Float(float* value) {
    if (!NumberBegins()) return false;
    const char* const after = ParseFloat(p_, end_, value);
    if (after == nullptr) return false;
    p_ = after;
    return NumberEnds();
  }
  template <typename Integer>
  bool Int(Integer* value) {
    if (!NumberBegins()) return false;
    const auto [after, problem] = std::from_chars(p_, end_, *value);
    p_ = after;
    return problem == std::errc() && NumberEnds();
  }

  bool ParseField(std::string_view key) {
    if (key == "named" || key == "sparse" || key == "dense") {
      if (has_features_) return false;
      has_features_ = true;
      if (key == "named") row_.kind = RowKind::kNamed;
      if (key == "dense") row_.kind = RowKind::kDense;
      return Object([this](std::string_view part) { return ParsePart(part); });
    }
    if (key == "text") return ParseText();
    if (key == "label" || key == "labelName") return ParseTarget(key);
    if (key != "weight" || has_weight_) return false;
    has_weight_ = true;
    return Float(&row_.weight);
  }

  bool ParseText() {
    if (has_features_) return false;
    has_features_ = true;
    row_.kind = RowKind::kText;
    std::string_view text;
    if (!String(&text)) return false;
    row_.text = text;
    return true;
  }

  bool ParseTarget(std::string_view key) {
    if (target_.kind != JsonTarget::Kind::kNone) return false;
    if (key == "label") {
      target_.kind = JsonTarget::Kind::kLabel;
      return Int(&target_.label);
    }
    target_.kind = JsonTarget::Kind::kLabelName;
    std::string_view name;
    if (!String(&name)) return false;
    target_.label_name = name;
    return true;
  }

  // A field of the features: the names, indices or values.
  bool ParsePart(std::string_view key) {
    if (key == "values") {
      if (has_values_) return false;
      has_values_ = true;
      return Array([this] {
        row_.values.emplace_back();
        return Float(&row_.values.back());
      });
    }
    const bool names = key == "names" && row_.kind == RowKind::kNamed;
    const bool indices = key == "indices" && row_.kind == RowKind::kSparse;
    if (has_keys_ || !(names || indices)) return false;
    has_keys_ = true;
    return names ? Array([this] { return Name(); }) : Array([this] { return Index(); });
  }
  bool Name() {
    std::string_view name;
    if (!String(&name)) return false;
    row_.AddName(name);
    return true;
  }
  bool Index() {
    row_.indices.emplace_back();
    return Int(&row_.indices.back());
  }

  const char* p_;
  const char* const end_;
  Row& row_;
  JsonTarget& target_;
  bool has_features_ = false;
  bool has_keys_ = false;
  bool has_values_ = false;
  bool has_weight_ = false;
};

}  // namespace

bool ParseUsualJson(std::string_view line, Row* row, JsonTarget* target) {
  return UsualJson(line, row, target).Parse();
}

}  // namespace perceptrond::client
