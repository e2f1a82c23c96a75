#include "app/workspace/view_requests.h"

#include <utility>

namespace app {
namespace {

profiler::TimelineSource source_of(const Document& document, std::string name) {
    return {document.trace.get(), &document.curve, &document.report->peak, std::move(name)};
}

profiler::LedgerSource ledger_source(const DocumentPtr& document) {
    if (!document || !document->has_step) return {};
    return {&document->report->ledger,
            document->report->closed_form ? &*document->report->closed_form : nullptr,
            document->trace->run().num_layers};
}

}  // namespace

profiler::TimelineRequest make_request(const Selection& selection, const TimeWindow& window,
                                       std::shared_ptr<const profiler::Alignment> alignment) {
    profiler::TimelineRequest request{.start_ns = window.start_ns,
                                      .end_ns = window.end_ns,
                                      .width_px = window.width_px,
                                      .alignment = std::move(alignment)};
    // The axis is that of A: without its step there is nothing to show B beside.
    if (!selection.a || !selection.a->has_step) return request;
    request.sources.push_back(source_of(*selection.a, "A  " + selection.look_a.name));
    if (selection.b && request.alignment) {
        request.sources.push_back(source_of(*selection.b, "B  " + selection.look_b.name));
    }
    return request;
}

profiler::ActivityRequest make_activity_request(
    const Selection& selection, const TimeWindow& window, int width_px,
    std::shared_ptr<const profiler::Alignment> alignment) {
    profiler::ActivityRequest request{.start_ns = window.start_ns,
                                      .end_ns = window.end_ns,
                                      .width_px = width_px,
                                      .alignment = std::move(alignment)};
    if (!selection.a || !selection.a->has_step) return request;
    request.sources.push_back({selection.a->trace.get(), &selection.a->activity});
    if (selection.b && request.alignment) {
        request.sources.push_back({selection.b->trace.get(), &selection.b->activity});
    }
    return request;
}

TimeWindow with_margins(TimeWindow window) {
    const double margin_ns = (window.end_ns - window.start_ns) / 2;
    window.start_ns -= margin_ns;
    window.end_ns += margin_ns;
    window.width_px *= 2;
    return window;
}

profiler::LedgerRequest make_request(const DocumentPtr& a, const DocumentPtr& b,
                                     const LedgerQuery& query) {
    return {.first = ledger_source(a),
            .second = ledger_source(query.compare ? b : nullptr),
            .filter = query.filter,
            .sort_by = query.sort_by,
            .descending = query.descending,
            .only_differences = query.only_differences};
}

}  // namespace app
