// One SVG document, written element by element. No library: what pictures need of SVG is text,
// shapes and a style, and Debian's writers of it (Cairo, Qt) draw onto surfaces, whose output has
// neither classes for a dark scheme nor titles for a reader of screens.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perceptrond::client {

// Sizes of fonts, in pixels.
inline constexpr double kTitleSize = 17;
inline constexpr double kTextSize = 13;

// A place in a picture, in its pixels: y grows downwards. Or in the plane that is drawn.
struct Point {
  double x = 0;
  double y = 0;
  bool operator==(const Point&) const = default;
};
using Polyline = std::vector<Point>;

// "3", "3.14", "-0.5": at most two decimals, "0" for what is not finite. SVG takes no infinity.
std::string SvgNumber(double value);
// Escaped for text and attributes; what XML 1.0 cannot hold (most control characters, bytes that
// are no UTF-8) becomes U+FFFD.
std::string SvgText(std::string_view text);
// About how wide a text is in a sans-serif face of that size; rather too wide.
double TextWidth(std::string_view text, double size);
// The text, or as much of it as fits, and "…".
std::string Shorten(std::string_view text, double size, double width);

// Threads: one.
class Svg {
 public:
  using Attributes = std::initializer_list<std::pair<const char*, std::string>>;

  // With a background in the scheme's colour, a title and a description for whoever cannot see it,
  // and the style sheet of svg.cc.
  Svg(double width, double height, std::string_view title, std::string_view description);

  // <name class="..." .../>
  void Add(const char* name, const char* style, Attributes attributes);
  // A text at its baseline. `anchor`: start, middle or end.
  void Text(Point at, const char* style, const char* anchor, std::string_view text);
  // The same, reading upwards.
  void TextUpwards(Point at, const char* style, std::string_view text);
  void Line(Point from, Point to, const char* style);
  void Circle(Point center, double radius, const char* style);
  void Rectangle(Point corner, double width, double height, const char* style);
  // Open lines, or closed areas by the even-odd rule, as one path; nothing if there are none.
  void Lines(const std::vector<Polyline>& lines, const char* style);
  void Areas(const std::vector<Polyline>& areas, const char* style);
  // What is added until Close is cut at the rectangle. Not nested.
  void OpenClip(Point corner, double width, double height);
  void Close();

  // The document.
  std::string Finish() const;

 private:
  void Path(const std::vector<Polyline>& lines, const char* style, bool closed);

  std::string text_;
  int clips_ = 0;
};

}  // namespace perceptrond::client
