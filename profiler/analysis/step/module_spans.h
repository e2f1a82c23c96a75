#pragma once

#include "profiler/trace/trace.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Which module runs at which time: layers, and the modules directly in them.
///
///     ops      addmm  bmm  softmax  bmm  addmm   gelu   addmm
///     inner   |        attention        |   intermediate   |
///     outer   |              encoder.layer.3               |
namespace profiler {

enum class ModuleLevel : uint8_t { kOuter, kInner };

/// From the first to the last op of a module that run without another module's between them.
struct ModuleSpan {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    Id<ModulePath> module;  // invalid: ops of the optimizer or the loss outside of all modules
    Id<Phase> phase;        // may be invalid
    int32_t ordinal = 0;    // number of modules before it that have the same parent
    int64_t allocated_bytes = 0;
    int64_t freed_bytes = 0;
    int64_t left_bytes = 0;  // allocated in the span and not freed in it
};

/// Spans in the order of time; they do not overlap.
struct ModuleTrack {
    std::vector<ModuleSpan> spans;

    /// The first span that ends after `time_ns`.
    std::size_t first_ending_after(int64_t time_ns) const;
    /// The first span that starts at `time_ns` or later.
    std::size_t first_starting_at(int64_t time_ns) const;
};

/// Built once per trace in O(n log n) for n ops and allocations. It copies what it needs, so the
/// trace need not outlive it.
///
/// An outer module is a layer, or a module as far out as possible that holds no layers
/// ("embeddings"). An op of backward counts for the module of its forward op.
class ModuleSpans {
public:
    explicit ModuleSpans(const Trace& trace);

    const ModuleTrack& track(ModuleLevel level) const {
        return tracks_[static_cast<std::size_t>(level)];
    }
    /// A trace without modules, such as a snapshot.
    bool empty() const { return tracks_[0].spans.empty(); }

private:
    std::array<ModuleTrack, 2> tracks_;  // by ModuleLevel
};

}  // namespace profiler
