#include "profiler/charts/svg_canvas.h"

#include "profiler/charts/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace {

using namespace profiler;
using testing::HasSubstr;
using testing::Not;

constexpr Color kRed{255, 0, 0};

std::string draw(const Draw& draw) {
    std::string svg;
    with_measuring_canvas([&](Canvas& measuring) {
        SvgCanvas canvas(200, 100, measuring);
        draw(canvas);
        svg = std::move(canvas).finish();
    });
    return svg;
}

TEST(SvgCanvas, WritesTextAsTextWithItsFontsSizeAndWidth) {
    double width = 0;
    const std::string svg = draw([&](Canvas& canvas) {
        width = canvas.text({10, 20}, "Peak memory",
                            {.size = 14, .weight = Weight::kBold, .color = kRed});
    });
    EXPECT_THAT(svg, HasSubstr("<text x=\"10\" y=\"20\" font-size=\"14\" font-weight=\"700\" "));
    EXPECT_THAT(svg, HasSubstr("fill=\"#ff0000\""));
    EXPECT_THAT(svg, HasSubstr(">Peak memory</text>"));
    EXPECT_THAT(svg, HasSubstr("font-family=\"Roboto, "));
    EXPECT_THAT(svg, HasSubstr("textLength=\"" + std::to_string(width).substr(0, 4)));
    EXPECT_NEAR(width, 86.93, 0.2) << "in Roboto Bold";
}

TEST(SvgCanvas, AnchorsTextAsItIsAligned) {
    const auto anchored = [](double align) {
        return draw([&](Canvas& canvas) {
            canvas.text({50, 20}, "12 MiB", {.color = kRed, .align = align});
        });
    };
    EXPECT_THAT(anchored(0), Not(HasSubstr("text-anchor")));
    EXPECT_THAT(anchored(0.5), HasSubstr("text-anchor=\"middle\""));
    EXPECT_THAT(anchored(1), HasSubstr("text-anchor=\"end\""));
    for (const double align : {0.0, 0.5, 1.0}) {
        EXPECT_THAT(anchored(align), HasSubstr("<text x=\"50\""));
    }
}

TEST(SvgCanvas, EscapesTextsTitleAndDescription) {
    const std::string svg = draw([](Canvas& canvas) {
        static_cast<SvgCanvas&>(canvas).describe("A & B", "x < y");
        canvas.text({0, 10}, "<b a=\"1\">", {});
    });
    EXPECT_THAT(svg, HasSubstr("<title>A &amp; B</title>\n<desc>x &lt; y</desc>"));
    EXPECT_THAT(svg, HasSubstr(">&lt;b a=&quot;1&quot;&gt;</text>"));
}

TEST(SvgCanvas, WritesANegativeNumberWithAMinusSign) {
    EXPECT_THAT(draw([](Canvas& canvas) { canvas.text({0, 10}, "-3 %", {}); }),
                HasSubstr(">−3 %</text>"));
}

TEST(SvgCanvas, WritesShapesInHundredthsOfAPoint) {
    const std::string svg = draw([](Canvas& canvas) {
        canvas.fill({1.0 / 3, 2, 10, 20}, kRed, 0.5);
        canvas.fill_rounded({0, 0, 5, 5}, 3, kRed);
        const std::array<Point, 3> corners{{{0, 0}, {10, 0}, {0, 10.006}}};
        canvas.polygon(corners, kRed);
        canvas.line({-0.001, 1}, {2, 3}, {.color = kRed, .width = 1.5, .dashed = true});
        canvas.ring({5, 5}, 2, {.color = kRed, .alpha = 0.25});
    });
    EXPECT_THAT(svg, HasSubstr("<rect x=\"0.33\" y=\"2\" width=\"10\" height=\"20\" "
                               "fill=\"#ff0000\" fill-opacity=\"0.5\"/>"));
    EXPECT_THAT(svg, HasSubstr("rx=\"3\""));
    EXPECT_THAT(svg, HasSubstr("<path d=\"M0 0H10L0 10.01Z\" fill=\"#ff0000\"/>"));
    EXPECT_THAT(svg, HasSubstr("d=\"M0 1L2 3\" fill=\"none\" stroke=\"#ff0000\" "
                               "stroke-width=\"1.5\" stroke-dasharray=\"4 3\""));
    EXPECT_THAT(svg, HasSubstr("<circle cx=\"5\" cy=\"5\" r=\"2\""));
    EXPECT_THAT(svg, HasSubstr("stroke-opacity=\"0.25\""));
}

TEST(SvgCanvas, ClipsAHatchToItsAreaUnderAnIdOfItsOwn) {
    const std::string svg = draw([](Canvas& canvas) {
        canvas.hatch(Rect{0, 0, 20, 10}, Hatch::kHorizontal, kRed, 0.3);
        canvas.hatch(Rect{30, 0, 20, 10}, Hatch::kDots, kRed, 0.3);
    });
    EXPECT_THAT(svg, HasSubstr("<clipPath id=\"clip0\"><path d=\"M0 0H20V10H0Z\"/>"));
    EXPECT_THAT(svg, HasSubstr("<path clip-path=\"url(#clip0)\" d=\"M0 0H20M0 6H20\""));
    EXPECT_THAT(svg, HasSubstr("<clipPath id=\"clip1\">"));
    EXPECT_THAT(svg, HasSubstr("stroke-linecap=\"round\""));
}

TEST(EscapeXml, LeavesNoMarkupAndNoControlCharacters) {
    EXPECT_EQ(escape_xml("<b a=\"1\">&\x01ü</b>"), "&lt;b a=&quot;1&quot;&gt;&amp; ü&lt;/b&gt;");
}

}  // namespace
