#include "app/workspace/view_requests.h"

#include <utility>

namespace app {
namespace {

profiler::TimelineSource timeline_source(const Document& document, std::string name) {
    return {document.trace.get(), &document.curve, &document.report->peak, std::move(name)};
}

profiler::LedgerSource ledger_source(const DocumentPtr& document) {
    if (!document || !document->has_step) return {};
    return {&document->report->ledger,
            document->report->closed_form ? &*document->report->closed_form : nullptr,
            document->trace->run().num_layers};
}

bool has_step(const Selection& selection) { return selection.a && selection.a->has_step; }

}  // namespace

models::Result<CompareResult> build_comparison(const CompareRequest& documents) {
    std::vector<profiler::NamedTrace> traces;
    for (const DocumentPtr& d : documents) {
        traces.push_back({d->file.string(), d->trace, d->report});
    }
    auto comparison = profiler::compare(traces);
    if (!comparison) return tl::unexpected(comparison.error());
    profiler::CompareView view = profiler::build_compare_view(*comparison);
    return CompareResult{std::move(*comparison), std::move(view)};
}

std::optional<Wanted<CompareRequest>> wanted_comparison(const SlotInputs& inputs) {
    if (inputs.documents.empty()) return std::nullopt;
    return Wanted<CompareRequest>{.request = inputs.documents};
}

profiler::TimelineRequest timeline_request(const Selection& selection, const TimeAxis& time,
                                           const TimeWindow& window) {
    profiler::TimelineRequest request{.start_ns = window.start_ns,
                                      .end_ns = window.end_ns,
                                      .width_px = window.width_px,
                                      .alignment = time.alignment};
    if (!has_step(selection)) return request;
    request.sources.push_back(timeline_source(*selection.a, "A  " + selection.look_a.name));
    if (selection.b && time.alignment) {
        request.sources.push_back(timeline_source(*selection.b, "B  " + selection.look_b.name));
    }
    return request;
}

std::optional<Wanted<profiler::TimelineRequest>> wanted_timeline(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    const TimeAxis& time = inputs.time;
    if (!has_step(selection) || time.window.width_px <= 0) return std::nullopt;
    return Wanted<profiler::TimelineRequest>{
        .request = timeline_request(selection, time, with_margins(time.window)),
        .documents = {selection.a, selection.b}};
}

std::optional<Wanted<profiler::ActivityRequest>> wanted_kernels(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    const TimeAxis& time = inputs.time;
    if (!has_step(selection) || time.kernels_width_px <= 0) return std::nullopt;
    const TimeWindow window = with_margins(time.window);
    profiler::ActivityRequest request{.start_ns = window.start_ns,
                                      .end_ns = window.end_ns,
                                      .width_px = 2 * time.kernels_width_px,  // with the margins
                                      .alignment = time.alignment};
    request.sources.push_back({selection.a->trace.get(), &selection.a->activity});
    if (selection.b && time.alignment) {
        request.sources.push_back({selection.b->trace.get(), &selection.b->activity});
    }
    return Wanted<profiler::ActivityRequest>{.request = std::move(request),
                                             .documents = {selection.a, selection.b}};
}

std::optional<Wanted<profiler::LedgerRequest>> wanted_ledger(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    const LedgerQuery& query = inputs.ledger_query;
    if (!has_step(selection)) return std::nullopt;
    return Wanted<profiler::LedgerRequest>{
        .request = {.first = ledger_source(selection.a),
                    .second = ledger_source(query.compare ? selection.b : nullptr),
                    .filter = query.filter,
                    .sort_by = query.sort_by,
                    .descending = query.descending,
                    .only_differences = query.only_differences},
        .documents = {selection.a, selection.b}};
}

}  // namespace app
