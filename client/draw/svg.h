// Svg: an SVG document written element by element. Debian's SVG libraries (Cairo, Qt) draw onto
// surfaces; their output has no classes for a dark scheme and no titles for screen readers.
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

// A point of a picture, in pixels with y downwards, or of the plane that is drawn.
struct Point {
  double x = 0;
  double y = 0;
  bool operator==(const Point&) const = default;
};
using Polyline = std::vector<Point>;

// "3", "3.14", "-0.5": at most two decimals; "0" for NaN and infinities, which SVG does not allow.
std::string SvgNumber(double value);
// The text escaped for XML text and attributes. Characters invalid in XML 1.0 (most control
// characters) and bytes that are not UTF-8 become U+FFFD.
std::string SvgText(std::string_view text);
// Estimated width of a text in a sans-serif font of that size, in pixels; an upper bound for most.
double TextWidth(std::string_view text, double size);
// The text, cut with "…" if it is wider than `width`.
std::string Shorten(std::string_view text, double size, double width);

// Threads: one.
class Svg {
 public:
  using Attributes = std::initializer_list<std::pair<const char*, std::string>>;

  // Starts a document with a background, a title and a description for screen readers, and the
  // style sheet of svg.cc. Sizes in pixels.
  Svg(double width, double height, std::string_view title, std::string_view description);

  // <name class="..." .../>
  void Add(const char* name, const char* style, Attributes attributes);
  // A text at its baseline. `anchor`: start, middle or end.
  void Text(Point at, const char* style, const char* anchor, std::string_view text);
  // The same, rotated to read upwards.
  void TextUpwards(Point at, const char* style, std::string_view text);
  void Line(Point from, Point to, const char* style);
  void Circle(Point center, double radius, const char* style);
  void Rectangle(Point corner, double width, double height, const char* style);
  // Open lines, or closed areas filled by the even-odd rule, as one path; nothing if empty.
  void Lines(const std::vector<Polyline>& lines, const char* style);
  void Areas(const std::vector<Polyline>& areas, const char* style);
  // Clips what is added until Close() to the rectangle. Cannot be nested.
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
