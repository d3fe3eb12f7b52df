#include "client/draw/svg.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/vector/name.h"

namespace perceptrond::client {
namespace {

constexpr char kFontFamily[] =
    "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif";

// One style sheet, with a light and a dark scheme.
// Labels differ in colour and in shape; the colours are distinguishable with red-green colour
// blindness (Okabe, Ito: Color Universal Design, 2008; lightened for the dark scheme). Text has a
// contrast of at least 4.5 to its background, marks of at least 3 (WCAG 2.1, 1.4.3 and 1.4.11).
constexpr char kStyles[] = R"(
.paper { fill: #ffffff } .plot { fill: #fbfcfd; stroke: none }
.title { fill: #1f2933; font-size: 17px; font-weight: 600 }
.text { fill: #1f2933; font-size: 13px } .soft { fill: #52606d; font-size: 13px }
.grid { stroke: #e4e7eb; stroke-width: 1 } .axis { stroke: #7b8794; stroke-width: 1; fill: none }
.boundary { stroke: #1f2933; stroke-width: 2.2 }
.margin { stroke: #1f2933; stroke-width: 1.3; stroke-dasharray: 6 4 }
.positive { fill: #0067a5; stroke: #ffffff; stroke-width: 0.8 }
.negative { fill: #c2500a; stroke: #ffffff; stroke-width: 0.8 }
.unlabelled { fill: #7b8794; stroke: #ffffff; stroke-width: 0.8 }
.positive-side { fill: #0067a5; fill-opacity: 0.13 } .negative-side { fill: #c2500a; fill-opacity: 0.13 }
.wrong { fill: none; stroke: #1f2933; stroke-width: 1.8 }
.wrong-of-many { fill: none; stroke: #1f2933; stroke-width: 0.9 }
.positive-line { stroke: #0067a5; stroke-width: 1.3 } .negative-line { stroke: #c2500a; stroke-width: 1.3; stroke-dasharray: 7 3 }
.positive-tick { stroke: #0067a5; stroke-width: 2.4 } .negative-tick { stroke: #c2500a; stroke-width: 2.4 }
.region { fill: #2f7d4f; fill-opacity: 0.28; stroke: #2f7d4f; stroke-width: 1 }
.weights { fill: #1f2933; stroke: #ffffff; stroke-width: 1.2 }
.first { stroke: #0067a5; stroke-width: 2 } .second { stroke: #c2500a; stroke-width: 2; stroke-dasharray: 7 3 }
.first-dot { fill: #0067a5 } .second-dot { fill: #c2500a }
.class-1 { color: #0067a5 } .class-2 { color: #c2500a } .class-3 { color: #007d5a } .class-4 { color: #a63d86 }
.class-5 { color: #857000 } .class-6 { color: #2b8cc4 } .class-7 { color: #5b45b0 } .class-8 { color: #9c2f2f }
.mark { fill: currentColor; stroke: #ffffff; stroke-width: 0.8 } .side { fill: currentColor; fill-opacity: 0.16 }
path { stroke-linejoin: round; stroke-linecap: butt }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .plot { fill: #131922 }
.title { fill: #e6edf3 } .text { fill: #e6edf3 } .soft { fill: #a3aeb9 }
.grid { stroke: #262e38 } .axis { stroke: #7d8894 }
.boundary { stroke: #e6edf3 } .margin { stroke: #e6edf3 }
.positive { fill: #58b4f0; stroke: #0d1117 } .negative { fill: #f5923e; stroke: #0d1117 }
.unlabelled { fill: #8b96a1; stroke: #0d1117 }
.positive-side { fill: #58b4f0; fill-opacity: 0.18 } .negative-side { fill: #f5923e; fill-opacity: 0.18 }
.wrong { stroke: #e6edf3 } .wrong-of-many { stroke: #e6edf3 }
.positive-line { stroke: #58b4f0 } .negative-line { stroke: #f5923e }
.positive-tick { stroke: #58b4f0 } .negative-tick { stroke: #f5923e }
.region { fill: #57c785; fill-opacity: 0.28; stroke: #57c785 }
.weights { fill: #e6edf3; stroke: #0d1117 }
.first { stroke: #58b4f0 } .second { stroke: #f5923e }
.first-dot { fill: #58b4f0 } .second-dot { fill: #f5923e }
.class-1 { color: #58b4f0 } .class-2 { color: #f5923e } .class-3 { color: #3cc99b } .class-4 { color: #e58fcb }
.class-5 { color: #d8c341 } .class-6 { color: #a5dcff } .class-7 { color: #ad98f5 } .class-8 { color: #ff8f8f }
.mark { stroke: #0d1117 } .side { fill-opacity: 0.2 }
}
)";

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

// Length in bytes of the UTF-8 character at `at`; 0 if it is invalid in UTF-8 or XML.
size_t CharacterBytes(std::string_view text, size_t at) {
  text.remove_prefix(at);
  const size_t size = Utf8Length(text);
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const bool control = byte(0) < 0x20 ? byte(0) != '\n' && byte(0) != '\t' : byte(0) == 0x7F;
  const bool c1 = size == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;
  // U+FFFE and U+FFFF.
  const bool noncharacter = size == 3 && byte(0) == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE;
  return control || c1 || noncharacter ? 0 : size;
}

std::string At(Point point) { return absl::StrCat(SvgNumber(point.x), " ", SvgNumber(point.y)); }

}  // namespace

std::string SvgNumber(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = absl::StrFormat("%.2f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string SvgText(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t size = CharacterBytes(text, at);
    if (size == 0) {
      out += kReplacement;
      ++at;
      continue;
    }
    switch (text[at]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += text.substr(at, size);
    }
    at += size;
  }
  return out;
}

double TextWidth(std::string_view text, double size) {
  double ems = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // Letters of other scripts may be as wide as they are high.
    if (byte < 0x80) ems += byte >= 'A' && byte <= 'Z' ? 0.68 : 0.55;
    if (byte >= 0xC0) ems += byte >= 0xE3 ? 1 : 0.6;
  }
  return ems * size;
}

std::string Shorten(std::string_view text, double size, double width) {
  if (TextWidth(text, size) <= width) return std::string(text);
  size_t end = text.size();
  do {
    --end;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  } while (end > 0 && TextWidth(text.substr(0, end), size) + size > width);
  return absl::StrCat(std::string(text.substr(0, end)), std::string(kEllipsis));
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description) {
  const std::string w = SvgNumber(width);
  const std::string h = SvgNumber(height);
  text_ = absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", w, " ", h,
                       "\" width=\"", w, "\" height=\"", h,
                       "\" role=\"img\" aria-labelledby=\"title desc\" font-family=\"", kFontFamily,
                       "\">\n<title id=\"title\">", SvgText(title), "</title>\n<desc id=\"desc\">",
                       SvgText(description), "</desc>\n<style>\n", kStyles, "</style>\n");
  Rectangle({0, 0}, width, height, "paper");
}

void Svg::Add(const char* name, const char* style, Attributes attributes) {
  absl::StrAppend(&text_, "<", name, " class=\"", style, "\"");
  for (const auto& [key, value] : attributes)
    absl::StrAppend(&text_, " ", key, "=\"", SvgText(value), "\"");
  text_ += "/>\n";
}

void Svg::Text(Point at, const char* style, const char* anchor, std::string_view text) {
  absl::StrAppend(&text_, "<text class=\"", style, "\" x=\"", SvgNumber(at.x), "\" y=\"",
                  SvgNumber(at.y), "\" text-anchor=\"", anchor, "\">", SvgText(text), "</text>\n");
}

void Svg::TextUpwards(Point at, const char* style, std::string_view text) {
  absl::StrAppend(&text_, "<text class=\"", style, "\" transform=\"translate(", At(at),
                  ") rotate(-90)\" text-anchor=\"middle\">", SvgText(text), "</text>\n");
}

void Svg::Line(Point from, Point to, const char* style) { Lines({{from, to}}, style); }

void Svg::Circle(Point center, double radius, const char* style) {
  Add("circle", style,
      {{"cx", SvgNumber(center.x)}, {"cy", SvgNumber(center.y)}, {"r", SvgNumber(radius)}});
}

void Svg::Rectangle(Point corner, double width, double height, const char* style) {
  Add("rect", style,
      {{"x", SvgNumber(corner.x)},
       {"y", SvgNumber(corner.y)},
       {"width", SvgNumber(width)},
       {"height", SvgNumber(height)}});
}

void Svg::Lines(const std::vector<Polyline>& lines, const char* style) {
  Path(lines, style, /*closed=*/false);
}

void Svg::Areas(const std::vector<Polyline>& areas, const char* style) {
  Path(areas, style, /*closed=*/true);
}

void Svg::Path(const std::vector<Polyline>& lines, const char* style, bool closed) {
  std::string path;
  for (const Polyline& line : lines) {
    if (line.size() < 2) continue;
    for (size_t i = 0; i < line.size(); ++i)
      absl::StrAppend(&path, i == 0 ? "M" : "L", At(line[i]));
    if (closed) path += "Z";
  }
  if (path.empty()) return;
  if (closed) return Add("path", style, {{"fill-rule", "evenodd"}, {"d", path}});
  Add("path", style, {{"fill", "none"}, {"d", path}});
}

void Svg::OpenClip(Point corner, double width, double height) {
  const std::string id = absl::StrCat("clip", ++clips_);
  absl::StrAppend(&text_, "<clipPath id=\"", id, "\">");
  Rectangle(corner, width, height, "");
  absl::StrAppend(&text_, "</clipPath>\n<g clip-path=\"url(#", id, ")\">\n");
}

void Svg::Close() { text_ += "</g>\n"; }

std::string Svg::Finish() const { return text_ + "</svg>\n"; }

}  // namespace perceptrond::client
