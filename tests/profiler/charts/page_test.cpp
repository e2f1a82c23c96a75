#include "profiler/charts/charts.h"

#include "profiler/analysis/step/step_report.h"
#include "profiler/charts/html.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace {

using namespace profiler;
using testing::HasSubstr;
using testing::Not;
using tests::TraceBuilder;

constexpr const char* kHostile = "</script><img onerror=document.title=1 src=x><!--<script>";

/// One step whose names are the given one.
Trace make_trace(const std::string& name) {
    TraceBuilder b;
    b.begin_step(PhaseKind::kForward);
    const auto op = b.op(name, b.module_path(name, 0));
    const auto block = b.allocate(
        {.bytes = 4096, .category = Category::kActivation, .op = op, .name = name, .shape = name});
    const auto save = b.save(block, op);
    b.begin_phase(PhaseKind::kBackward);
    b.release(save);
    b.free(block);
    return b.finish();
}

/// What the page of these traces needs, kept alive.
class PageSteps {
public:
    PageRequest add(const Trace& trace, const std::string& name) {
        request_.names[steps_.size()] = name;
        steps_.emplace_back(trace);
        (request_.steps.a ? request_.steps.b : request_.steps.a) = &steps_.back();
        if (request_.steps.b) {
            request_.alignment = std::make_shared<const Alignment>(
                align(request_.steps.a->trace(), trace, TimeAlignment::kPhases));
        }
        return request_;
    }

private:
    std::list<StepIndex> steps_;
    PageRequest request_;
};

std::string page_of(const Trace& trace, const std::string& name = "original") {
    PageSteps steps;
    return make_page(build_page_view(steps.add(trace, name)));
}

/// The text of the data element.
nlohmann::json data_of(const std::string& page) {
    const std::string open = "<script type=\"application/json\" id=\"data\">";
    const std::size_t start = page.find(open) + open.size();
    return nlohmann::json::parse(page.substr(start, page.find("</script>", start) - start));
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
}

TEST(Page, LoadsNothingAndRunsOnlyItsOwnScript) {
    const std::string page = page_of(make_trace("query"));
    EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'; base-uri 'none'; "
                                "form-action 'none'; style-src 'sha256-"));
    EXPECT_THAT(page, Not(HasSubstr("unsafe-")));
    for (const char* part : {"http:", "https:", "src=", "href=", "@import", "url("}) {
        EXPECT_THAT(page, Not(HasSubstr(part)));
    }
}

TEST(Page, ShowsHostileNamesAsText) {
    const std::string plain = page_of(make_trace("query"));
    const std::string page = page_of(make_trace(kHostile), kHostile);
    EXPECT_EQ(count(page, "<script"), count(plain, "<script"));
    EXPECT_EQ(count(page, "</script"), count(plain, "</script"));
    EXPECT_EQ(count(page, "<img"), 0U);
    EXPECT_EQ(count(page, "<!--"), count(plain, "<!--"));
    const nlohmann::json data = data_of(page);
    EXPECT_EQ(data["traces"][0]["name"], kHostile);
    EXPECT_EQ(data["ledger"]["rows"][0]["tensor"], kHostile);
    EXPECT_EQ(data["traces"][0]["blocks"]["labels"][0][0], kHostile);
}

TEST(Page, ShortensNamesThatFillPages) {
    const std::string page = page_of(make_trace(std::string(100'000, 'x')));
    EXPECT_LT(page.size(), 150'000U);
    EXPECT_THAT(page, HasSubstr("xxx…"));
}

TEST(Page, OfEqualViewsIsEqual) {
    const Trace trace = make_trace("query");
    EXPECT_EQ(page_of(trace), page_of(trace));
}

TEST(Page, HoldsBothTracesOnOneAxis) {
    const Trace a = make_trace("query");
    const Trace b = make_trace("key");
    PageSteps steps;
    steps.add(a, "original");
    const nlohmann::json data = data_of(make_page(build_page_view(steps.add(b, "tempo"))));
    EXPECT_EQ(data["traces"].size(), 2U);
    EXPECT_TRUE(data["is_aligned"]);
    EXPECT_TRUE(data["ledger"]["has_other"]);
    EXPECT_EQ(data["ledger"]["rows"].size(), 2U);
}

TEST(Page, OfASnapshotOf22000EventsIsBelow2MB) {
    EXPECT_LT(page_of(tests::make_synthetic_trace({.num_allocations = 11'000})).size(), 2'000'000U);
}

TEST(Page, OfAMillionAllocationsIsBelow20MB) {
    const std::string page = page_of(tests::make_synthetic_trace({.num_allocations = 1'000'000}));
    EXPECT_LT(page.size(), 20'000'000U);
    const nlohmann::json moments = data_of(page)["traces"][0]["moments"];
    EXPECT_FALSE(moments["is_exact"]);
    EXPECT_GT(moments["count"], 100'000);
}

TEST(PackedNumbers, TakeSevenBitsAByte) {
    PackedNumbers numbers;
    for (const uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 40}) {
        numbers.add(value);
    }
    using namespace std::string_literals;
    EXPECT_EQ(numbers.bytes(), "\x00\x7f\x80\x01\x80\x80\x80\x80\x80\x20"s);
}

TEST(PackedNumbers, KeepSmallNegativeNumbersSmall) {
    PackedNumbers numbers;
    for (const int64_t value : {0, -1, 1, -2, 64}) numbers.add_signed(value);
    using namespace std::string_literals;
    EXPECT_EQ(numbers.bytes(), "\x00\x01\x02\x03\x80\x01"s);
}

TEST(PackedNumbers, AreBase64OfAnyLength) {
    EXPECT_EQ(to_base64(""), "");
    EXPECT_EQ(to_base64("f"), "Zg==");
    EXPECT_EQ(to_base64("fo"), "Zm8=");
    EXPECT_EQ(to_base64("foo"), "Zm9v");
    EXPECT_EQ(to_base64("\xff\xfe\xfd\xfc"), "//79/A==");
}

}  // namespace
