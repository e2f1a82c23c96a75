#pragma once

#include "profiler/analysis/step/call_site.h"
#include "profiler/trace/trace.h"
#include "profiler/view/peak/flame_view.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Where in the tree of the flame graph the allocations of one trace belong.
///
/// A place is an inner node: a module, a call stack, an op or a category. Many allocations share a
/// place, so its path is computed once.
namespace profiler {

/// What the trace has to make a tree of: modules, else call stacks, else ops, else categories.
FlameTree flame_tree_of(const Trace& trace, bool by_stack);

class FlamePlaces {
public:
    struct Options {
        FlameTree tree = FlameTree::kModules;
        bool combine_layers = false;
    };
    /// One level of a path.
    struct Step {
        std::string text;
        int64_t layer = -1;     // of a layer's own node, unless layers are combined
        std::string_view code;  // the text of a line of code, where it was recorded
    };

    /// `step` must outlive this.
    FlamePlaces(const StepIndex& step, Options options);

    std::size_t count() const { return count_; }
    std::size_t place_of(Id<Allocation> allocation) const;
    /// From the outermost level to the place itself; at most kMaxFlameDepth levels.
    std::vector<Step> path_of(std::size_t place) const;
    /// The name of the allocation below its place.
    std::string leaf_name(Id<Allocation> allocation, std::size_t place) const;
    /// Whether allocations of one name are one node there.
    bool merges_names(std::size_t place) const;

    Category category_of(Id<Allocation> allocation) const;

private:
    void mark_containers();
    Id<ModulePath> parent_of(Id<ModulePath> module) const;
    Id<ModulePath> module_in_name(StringId name) const;
    Id<Stack> parent_of(Id<Stack> stack) const;
    StringId name_of_storage(Id<Allocation> allocation) const;
    std::vector<Step> module_steps(Id<ModulePath> module) const;
    std::vector<Step> stack_steps(Id<Stack> stack) const;
    std::string op_in_stack(Id<Stack> stack) const;

    const Trace& trace_;
    const std::vector<StringId>& storage_names_;
    const Options options_;
    const CallSites& sites_;
    std::size_t count_ = 0;  // the last place is that of allocations which belong nowhere
    /// A module that only holds layers ("encoder.layer") has no node of its own.
    std::vector<char> is_container_;
    std::unordered_map<std::string_view, Id<ModulePath>> module_of_path_;
    mutable std::unordered_map<int32_t, Id<ModulePath>> module_of_name_;  // a cache
};

}  // namespace profiler
