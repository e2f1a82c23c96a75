#include "profiler/charts/svg.h"

#include <gtest/gtest.h>

namespace {

using namespace profiler;

TEST(RenumberSvgIds, NamesIdsByTheirOrderAndFollowsReferences) {
    EXPECT_EQ(renumber_svg_ids(R"x(<g id="s7"><use xlink:href="#glyph0-1" clip="url(#s7)"/>)x"
                               R"x(<symbol id="glyph0-1"/></g>)x"),
              R"x(<g id="c0"><use xlink:href="#c1" clip="url(#c0)"/><symbol id="c1"/></g>)x");
}

TEST(RenumberSvgIds, MakesTextsEqualThatDifferInNumbersOnly) {
    EXPECT_EQ(renumber_svg_ids(R"x(<a id="s12"/><b x="url(#s12)"/>)x"),
              renumber_svg_ids(R"x(<a id="s9"/><b x="url(#s9)"/>)x"));
    EXPECT_NE(renumber_svg_ids(R"x(<a id="s1"/><b x="url(#s1)"/>)x"),
              renumber_svg_ids(R"x(<a id="s1"/><b x="url(#s2)"/>)x"));
}

TEST(RenumberSvgIds, LeavesOtherTextAlone) {
    EXPECT_EQ(renumber_svg_ids("<svg width=\"10\"/>"), "<svg width=\"10\"/>");
    EXPECT_EQ(renumber_svg_ids(""), "");
    EXPECT_EQ(renumber_svg_ids("<a id=\"open"), "<a id=\"open");
}

TEST(DescribeSvg, AddsEscapedTitleAndDescription) {
    EXPECT_EQ(describe_svg("<?xml?><svg a=\"1\"><g/></svg>", "A & B", "x < y"),
              "<?xml?><svg a=\"1\">\n<title>A &amp; B</title>\n<desc>x &lt; y</desc><g/></svg>");
    EXPECT_EQ(describe_svg("no picture", "t", "d"), "no picture");
}

TEST(EscapeXml, LeavesNoMarkupAndNoControlCharacters) {
    EXPECT_EQ(escape_xml("<b a=\"1\">&\x01ü</b>"), "&lt;b a=&quot;1&quot;&gt;&amp; ü&lt;/b&gt;");
}

TEST(SvgElement, DropsWhatStandsBefore) {
    EXPECT_EQ(svg_element("<?xml version=\"1.0\"?>\n<svg/>"), "<svg/>");
}

}  // namespace
