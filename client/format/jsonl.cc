// JSON lines: each line is a perceptron.v1.Example in protobuf's JSON form, such as
// {"named": {"names": ["free", "win"]}, "label": "spam"}, {"text": "Win a prize!", "label": 1} or
// {"sparse": {"indices": [3, 7]}, "label": -1}; or an object whose fields are features by name,
// {"price": 2.5, "colour": "red", "label": 1}, of which a text is the feature "colour=red" and true and false are 1 and 0.
// A label may be a number or a name. Null is an error wherever it stands.
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/format/format.h"
#include "client/format/scan.h"
#include "core/vector/name.h"

namespace perceptrond::client {
namespace {

// Reads one line. Methods return false at an error, which error() then describes.
class ObjectReader {
 public:
  // Starts a line. Into *row go the features and the weight.
  void Start(std::string_view line, Row* row) {
    begin_ = p_ = line.data();
    end_ = begin_ + line.size();
    row_ = row;
    error_.clear();
    label_.clear();
    label_problem_.clear();
    has_label_ = has_features_ = has_weight_ = is_flat_ = false;
  }

  bool Read() {
    if (!IsNext('{'))
      return Fail(IsNext('[')
                      ? "the line begins a JSON array; jsonl has an object on each line, as "
                        "jq -c '.[]' writes them"
                      : "the line is no JSON object");
    if (!Object([this](std::string_view key) { return Field(key); })) return false;
    SkipSpace();
    if (p_ != end_) return Fail("something follows the object; jsonl has one object on each line");
    if (!has_features_ && !is_flat_) {
      return Fail(
          "the example has no features: give \"dense\", \"sparse\", \"named\" or \"text\", or "
          "features by name, as {\"price\": 2.5, \"label\": 1}");
    }
    if (is_flat_ && has_weight_) {
      return Fail(
          "\"weight\" would be the weight of the example, not a feature; rename it, or put the "
          "features into \"named\"");
    }
    return true;
  }

  const std::string& error() const { return error_; }
  bool has_label() const { return has_label_; }
  const std::string& label() const { return label_; }
  // Why the value of the label is none; empty: it is one.
  const std::string& label_problem() const { return label_problem_; }

 private:
  bool Fail(const std::string& what) {
    if (error_.empty()) error_ = what;
    return false;
  }
  // Of a value that is not what is expected.
  bool Mismatch(const std::string& field, absl::string_view expected) {
    return Fail(absl::StrCat(field, " is ", Described(), "; expected ", expected));
  }
  std::string Described() {
    SkipSpace();
    if (p_ == end_) return "missing";
    const std::string_view rest(p_, static_cast<size_t>(end_ - p_));
    for (const char* word : {"null", "true", "false", "NaN"}) {
      if (rest.starts_with(word)) return word;
    }
    return *p_ == '"'   ? "a text"
           : *p_ == '{' ? "an object"
           : *p_ == '[' ? "an array"
           : NumberBegins()
               ? "a number"
               : absl::StrCat("\"", std::string(rest.substr(0, rest.find_first_of(",]} "))), "\"");
  }

  void SkipSpace() {
    while (p_ != end_ && IsBlank(*p_)) ++p_;
  }
  bool IsNext(char c) {
    SkipSpace();
    return p_ != end_ && *p_ == c;
  }
  // Skips space and `c`, if that is next.
  bool Take(char c) {
    if (!IsNext(c)) return false;
    ++p_;
    return true;
  }
  bool Expect(char c) {
    if (Take(c)) return true;
    if (p_ == end_) {
      return Fail(
          "the object does not end in this line; jsonl has an object on each line, as jq -c . "
          "writes them");
    }
    return Fail(
        absl::StrCat("byte ", p_ - begin_ + 1, " of the line: expected '", std::string(1, c), "'"));
  }

  // An object, whose values `field` reads, given their keys.
  template <typename FieldReader>
  bool Object(const FieldReader& field) {
    if (!Expect('{')) return false;
    if (Take('}')) return true;
    do {
      std::string_view key;
      if (!IsNext('"')) return Expect('"');
      if (!String(&key, &key_) || !Expect(':') || !field(key)) return false;
    } while (Take(','));
    return Expect('}');
  }

  // An array, whose elements `element` reads, given their positions.
  template <typename ElementReader>
  bool Array(const ElementReader& element) {
    if (Take(']')) return true;
    size_t i = 0;
    do {
      if (!element(i++)) return false;
    } while (Take(','));
    return Expect(']');
  }

  // A string that begins here. *text is valid until `unescaped` changes.
  bool String(std::string_view* text, std::string* unescaped) {
    if (!Expect('"')) return false;
    const char* const begin = p_;
    unsigned char above_ascii = 0;
    while (p_ != end_ && *p_ != '"' && *p_ != '\\') {
      const auto c = static_cast<unsigned char>(*p_++);
      if (c < 0x20) return Fail("a text has a control character; JSON writes it as \\u00XX");
      above_ascii |= c & 0x80;
    }
    *text = std::string_view(begin, static_cast<size_t>(p_ - begin));
    if (p_ != end_ && *p_ == '\\') {
      unescaped->assign(*text);
      if (!Unescape(unescaped)) return false;
      *text = *unescaped;
      above_ascii = 0x80;
    }
    if (!Expect('"')) return false;
    if (above_ascii == 0 || IsValidUtf8(*text)) return true;
    return Fail("a text is not UTF-8; if it is Latin-1, iconv -f LATIN1 -t UTF-8 converts it");
  }

  // The rest of a string, up to its quote.
  bool Unescape(std::string* text) {
    while (p_ != end_ && *p_ != '"') {
      if (*p_ != '\\') {
        if (static_cast<unsigned char>(*p_) < 0x20)
          return Fail("a text has a control character; JSON writes it as \\u00XX");
        text->push_back(*p_++);
        continue;
      }
      if (++p_ == end_) break;
      constexpr std::string_view kEscapes = "\"\\/bfnrt";
      constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
      const char escape = *p_++;
      const size_t known = kEscapes.find(escape);
      if (known != std::string_view::npos) {
        text->push_back(kMeanings[known]);
      } else if (uint32_t code = 0; escape != 'u' || !CodePoint(&code)) {
        return Fail("a text has an escape that JSON does not have");
      } else {
        AppendUtf8(code, text);
      }
    }
    return true;
  }

  // What follows "\u": four digits, or those of two surrogates.
  bool CodePoint(uint32_t* code) {
    if (!FourDigits(code) || (*code >> 10) == 0x37) return false;
    if ((*code >> 10) != 0x36) return true;
    uint32_t low = 0;
    if (end_ - p_ < 2 || p_[0] != '\\' || p_[1] != 'u') return false;
    p_ += 2;
    if (!FourDigits(&low) || (low >> 10) != 0x37) return false;
    *code = 0x10000 + ((*code & 0x3ff) << 10) + (low & 0x3ff);
    return true;
  }
  bool FourDigits(uint32_t* number) {
    if (end_ - p_ < 4) return false;
    const auto [after, problem] = std::from_chars(p_, p_ + 4, *number, 16);
    if (problem != std::errc() || after != p_ + 4) return false;
    p_ += 4;
    return true;
  }
  static void AppendUtf8(uint32_t code, std::string* text) {
    const auto append = [text](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
    if (code < 0x80) return append(code);
    if (code < 0x800) {
      append(0xc0 | code >> 6);
    } else if (code < 0x10000) {
      append(0xe0 | code >> 12);
      append(0x80 | (code >> 6 & 0x3f));
    } else {
      append(0xf0 | code >> 18);
      append(0x80 | (code >> 12 & 0x3f));
      append(0x80 | (code >> 6 & 0x3f));
    }
    append(0x80 | (code & 0x3f));
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
    return *p_ == ',' || *p_ == ']' || *p_ == '}' || IsBlank(*p_);
  }
  // `field` returns what the number is, for an error.
  template <typename FieldName>
  bool Float(float* value, const FieldName& field) {
    if (!NumberBegins()) return Mismatch(field(), "a number");
    const char* const begin = p_;
    p_ = ParseFloat(begin, end_, value);
    if (p_ != nullptr && NumberEnds()) return true;
    p_ = begin;
    const std::string_view text = NumberText();
    return Fail(
        absl::StrCat(field(), ": ", std::string(text.substr(0, 40)), " ", NumberProblem(text)));
  }
  // Up to the end of the value.
  std::string_view NumberText() const {
    const std::string_view rest(p_, static_cast<size_t>(end_ - p_));
    return rest.substr(0, rest.find_first_of(",]} \t"));
  }

  bool Field(std::string_view key) {
    if (key == "named" || key == "sparse" || key == "dense") return Features(std::string(key));
    if (key == "text") return Text(key, RowKind::kText);
    if (key == "predictionId" || key == "prediction_id") return Text(key, RowKind::kPredictionId);
    if (key == "label" || key == "labelName" || key == "label_name") return Label(key);
    if (key == "weight") {
      if (has_weight_) return Fail("\"weight\" is given twice");
      has_weight_ = true;
      return Float(&row_->weight, [] { return "weight"; });
    }
    return FlatFeature(key);
  }

  bool BeginFeatures(std::string_view key, RowKind kind) {
    if (is_flat_)
      return Fail(absl::StrCat("\"", std::string(key),
                               "\" is not for an object whose fields are features by name"));
    if (has_features_) return Fail("the example has features of two kinds, or twice");
    has_features_ = true;
    row_->kind = kind;
    return true;
  }

  bool Text(std::string_view key, RowKind kind) {
    if (!BeginFeatures(key, kind)) return false;
    if (!IsNext('"')) return Mismatch(std::string(key), "a text");
    std::string_view text;
    if (!String(&text, &value_)) return false;
    row_->text = text;
    return true;
  }

  bool Label(std::string_view key) {
    if (has_label_) return Fail("the label is given twice");
    has_label_ = true;
    std::string_view text;
    if (IsNext('"')) {
      if (!String(&text, &value_)) return false;
    } else if (NumberBegins()) {
      text = NumberText();
      p_ += text.size();
    } else {
      label_problem_ =
          absl::StrCat(std::string(key), " is ", Described(), "; expected a number or a name");
      // Null, true and false may stand for a label that is not known.
      const std::string_view word = NumberText();
      if (word != "null" && word != "true" && word != "false") return Fail(label_problem_);
      p_ += word.size();
    }
    label_ = text;
    return true;
  }

  bool Features(const std::string& key) {
    const RowKind kind = key == "named"   ? RowKind::kNamed
                         : key == "dense" ? RowKind::kDense
                                          : RowKind::kSparse;
    if (!BeginFeatures(key, kind)) return false;
    if (!IsNext('{')) return Mismatch(key, "an object");
    has_keys_ = has_values_ = false;
    return Object([&](std::string_view part) { return Part(key, std::string(part)); }) &&
           CheckCounts();
  }

  // A field of the features: the names, indices or values.
  bool Part(const std::string& key, const std::string& part) {
    const auto element = [&](size_t i) { return absl::StrCat(key, ".", part, "[", i, "]"); };
    const bool names = part == "names" && row_->kind == RowKind::kNamed;
    const bool indices = part == "indices" && row_->kind == RowKind::kSparse;
    if (part != "values" && !names && !indices)
      return Fail(absl::StrCat("\"", part, "\" is no field of \"", key, "\""));
    if (std::exchange(part == "values" ? has_values_ : has_keys_, true))
      return Fail(absl::StrCat(key, ".", part, " is given twice"));
    if (!Take('[')) return Mismatch(absl::StrCat(key, ".", part), "an array");
    if (names) {
      return Array([&](size_t i) {
        std::string_view name;
        if (!IsNext('"')) return Mismatch(element(i), "a name");
        if (!String(&name, &value_)) return false;
        row_->AddName(name);
        return true;
      });
    }
    if (indices) {
      return Array([&](size_t i) { return Index([&] { return element(i); }); });
    }
    return Array([&](size_t i) {
      row_->values.emplace_back();
      return Float(&row_->values.back(), [&] { return element(i); });
    });
  }

  template <typename FieldName>
  bool Index(const FieldName& field) {
    row_->indices.emplace_back();
    if (!NumberBegins()) return Mismatch(field(), "an index");
    const char* const begin = p_;
    const auto [after, problem] = std::from_chars(p_, end_, row_->indices.back());
    p_ = after;
    if (problem == std::errc() && NumberEnds()) return true;
    p_ = begin;
    const std::string_view text = NumberText();
    return Fail(absl::StrCat(field(), ": ", std::string(text.substr(0, 40)),
                             *begin != '-' && IsTooLarge(text, std::numeric_limits<uint32_t>::max())
                                 ? " is too large; the largest index is 4294967295"
                                 : " is not an index, a whole number from 0"));
  }

  bool CheckCounts() {
    const size_t features = row_->feature_count();
    if (row_->kind == RowKind::kDense || row_->values.empty() || row_->values.size() == features)
      return true;
    return Fail(absl::StrCat(features, " features but ", row_->values.size(), " values"));
  }

  // A field that is none of an Example.
  bool FlatFeature(std::string_view key) {
    const std::string shown = absl::StrCat("\"", std::string(key.substr(0, 40)), "\"");
    if (has_features_)
      return Fail(absl::StrCat(shown, " is no field of an example, whose features are given too"));
    is_flat_ = true;
    row_->kind = RowKind::kNamed;
    float value = 1;
    if (IsNext('"')) {
      std::string_view text;
      if (!String(&text, &value_)) return false;
      row_->AddName(key, '=', text);
    } else if (const std::string_view word = NumberText(); word == "true" || word == "false") {
      row_->AddName(key);
      value = word == "true" ? 1 : 0;
      p_ += word.size();
    } else if (NumberBegins()) {
      if (!Float(&value, [&] { return shown; })) return false;
      row_->AddName(key);
    } else {
      return Mismatch(shown, "a number or a text as a feature");
    }
    row_->values.push_back(value);
    return true;
  }

  const char* begin_ = nullptr;
  const char* p_ = nullptr;
  const char* end_ = nullptr;
  Row* row_ = nullptr;
  std::string error_;
  std::string label_;
  std::string label_problem_;
  // Strings with escapes.
  std::string key_;
  std::string value_;
  bool has_label_ = false;
  bool has_features_ = false;
  bool has_weight_ = false;
  bool is_flat_ = false;
  bool has_keys_ = false;
  bool has_values_ = false;
};

class Jsonl final : public Format {
 public:
  explicit Jsonl(const FormatOptions& options) : Format(options) {}

 private:
  absl::StatusOr<LineKind> ParseLine(std::string_view line, Row* row) override {
    if (line.find_first_not_of(" \t") == std::string_view::npos) return LineKind::kNothing;
    object_.Start(line, row);
    if (!object_.Read()) return absl::InvalidArgumentError(object_.error());
    absl::Status status;
    if (!object_.label_problem().empty()) {
      status = NoLabel(absl::InvalidArgumentError(object_.label_problem()));
    } else if (object_.has_label()) {
      status = ReadLabel(object_.label(), row);
    } else if (require_label()) {
      status = absl::InvalidArgumentError(
          "there is no \"label\"; jsonl has the label in the field of that name");
    }
    if (!status.ok()) return status;
    return LineKind::kExample;
  }

  ObjectReader object_;
};

}  // namespace

std::unique_ptr<Format> MakeJsonl(const FormatOptions& options) {
  return std::make_unique<Jsonl>(options);
}

}  // namespace perceptrond::client
