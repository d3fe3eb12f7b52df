// How pictures look: one style sheet, with a light and a dark scheme.
#pragma once

namespace perceptrond::client {

inline constexpr char kFontFamily[] =
    "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif";
inline constexpr double kTitleSize = 17;
inline constexpr double kTextSize = 13;

// Labels differ in colour and in shape, and the colours are apart for those who do not see red and
// green (Okabe, Ito: Color Universal Design, 2008; lightened for the dark scheme). Text has a
// contrast of at least 4.5 to its background, marks of at least 3 (WCAG 2.1, 1.4.3 and 1.4.11).
inline constexpr char kStyles[] = R"(
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
}
)";

}  // namespace perceptrond::client
