#include "app/workspace/blocks_requests.h"

#include <utility>

namespace app {
namespace {

using Show = BlocksQuery::Show;

bool has_step(const DocumentPtr& document) { return document && document->has_step; }

profiler::BlockSource block_source(const Document& document) {
    return {document.trace.get(), &document.blocks, document.block_details.get(),
            &document.storage_names};
}

/// What all requests of the panel begin with: A must have a step, and the panel must be in sight.
bool is_wanted(const WindowInputs& inputs) {
    const BlocksQuery& query = inputs.queries.blocks;
    return inputs.open.blocks && has_step(inputs.selection.a) && query.width_px > 0 &&
           query.height_px > 0;
}

bool is_difference(const WindowInputs& inputs) {
    return inputs.queries.blocks.show == Show::kDifference && has_step(inputs.selection.b);
}

std::vector<DocumentPtr> documents_of(const WindowInputs& inputs) {
    return {inputs.selection.a, inputs.selection.b};
}

}  // namespace

std::vector<profiler::BlockSource> block_sources(const Selection& selection) {
    std::vector<profiler::BlockSource> sources;
    if (!has_step(selection.a)) return sources;
    sources.push_back(block_source(*selection.a));
    if (has_step(selection.b)) sources.push_back(block_source(*selection.b));
    return sources;
}

size_t shown_trace(const Selection& selection, const BlocksQuery& query) {
    return query.show == Show::kB && has_step(selection.b) ? 1 : 0;
}

profiler::BlockColoring coloring_of(const Selection& selection, const BlocksQuery& query) {
    using profiler::BlockColoring;
    if (query.coloring) return *query.coloring;
    const bool only_stacks =
        selection.a && selection.a->trace->ops.empty() && !selection.a->trace->stacks.empty();
    return only_stacks ? BlockColoring::kOp : BlockColoring::kCategory;
}

double moment_of(const Selection& selection) {
    if (selection.moment_ns) return *selection.moment_ns;
    return selection.a ? static_cast<double>(selection.a->report->peak.time_ns) : 0;
}

std::optional<Wanted<profiler::BlocksRequest>> wanted_blocks(const WindowInputs& inputs) {
    if (!is_wanted(inputs)) return std::nullopt;
    const BlocksQuery& query = inputs.queries.blocks;
    TimeWindow window = inputs.time.window;
    window.width_px = query.width_px;
    return Wanted<profiler::BlocksRequest>{
        .request = {.time = timeline_request(inputs.selection, inputs.time, with_margins(window)),
                    .sources = block_sources(inputs.selection),
                    .shown = shown_trace(inputs.selection, query),
                    .difference = is_difference(inputs),
                    .height_px = query.height_px,
                    .phase_strip_px = query.phase_strip_px,
                    .low_bytes = query.low_bytes,
                    .high_bytes = query.high_bytes,
                    .all = inputs.time.limits,
                    .minimap_px = query.minimap_px,
                    .order = query.order,
                    .coloring = coloring_of(inputs.selection, query)},
        .documents = documents_of(inputs)};
}

std::optional<Wanted<profiler::LiveBlocksRequest>> wanted_live_blocks(const WindowInputs& inputs) {
    if (!is_wanted(inputs)) return std::nullopt;
    return Wanted<profiler::LiveBlocksRequest>{
        .request = {.time = timeline_request(inputs.selection, inputs.time, {}),
                    .sources = block_sources(inputs.selection),
                    .shown = shown_trace(inputs.selection, inputs.queries.blocks),
                    .difference = is_difference(inputs),
                    .moment_ns = moment_of(inputs.selection)},
        .documents = documents_of(inputs)};
}

std::optional<Wanted<profiler::SegmentMapRequest>> wanted_segments(const WindowInputs& inputs) {
    if (!is_wanted(inputs) || inputs.queries.blocks.segment_px <= 0) return std::nullopt;
    const auto sources = block_sources(inputs.selection);
    const size_t shown = shown_trace(inputs.selection, inputs.queries.blocks);
    const bool replayed = inputs.queries.blocks.what_if.shows_map && inputs.replayed &&
                          inputs.replayed->trace == sources[shown].trace;
    return Wanted<profiler::SegmentMapRequest>{
        .request = {.time = timeline_request(inputs.selection, inputs.time, {}),
                    .sources = sources,
                    .shown = shown,
                    .moment_ns = moment_of(inputs.selection),
                    .width_px = inputs.queries.blocks.segment_px,
                    .layout = replayed ? inputs.replayed : nullptr,
                    .address = inputs.queries.blocks.segment},
        .documents = documents_of(inputs)};
}

std::optional<Wanted<profiler::WhatIfRequest>> wanted_what_if(const WindowInputs& inputs) {
    if (!is_wanted(inputs) || !inputs.queries.blocks.what_if.is_open) return std::nullopt;
    const auto sources = block_sources(inputs.selection);
    return Wanted<profiler::WhatIfRequest>{
        .request = {.source = sources[shown_trace(inputs.selection, inputs.queries.blocks)],
                    .choice = inputs.queries.blocks.what_if.choice,
                    .tries_all = inputs.queries.blocks.what_if.tries_all},
        .documents = documents_of(inputs)};
}

}  // namespace app
