#include "profiler/view/peak/flame_view.h"

#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/memory/block_groups.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/search_words.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

namespace profiler {
namespace {

constexpr std::string_view kOutsideModules = "outside the model";
/// A longer chain of parents is followed no further, because each place follows its own.
constexpr std::size_t kMaxChain = 2048;

/// Parents come before their children; a damaged file may say otherwise, and then has cycles.
template <typename Row>
Id<Row> checked_parent(Id<Row> row, Id<Row> parent) {
    return parent.valid() && parent < row ? parent : Id<Row>();
}

/// "layer.*" of "layer.3".
std::string without_number(std::string_view label) {
    const std::size_t dot = label.rfind('.');
    return dot == std::string_view::npos ? "*" : fmt::format("{}.*", label.substr(0, dot));
}

/// "rsqrt" of "at::_ops::rsqrt::call(at::Tensor const&)"; empty for other functions.
std::string_view torch_op(std::string_view function) {
    constexpr std::string_view kPrefix = "at::_ops::";
    if (!function.starts_with(kPrefix)) return {};
    function.remove_prefix(kPrefix.size());
    return function.substr(0, function.find(':'));
}

/// What the trace has to make a tree of: modules, else call stacks, else ops, else categories.
FlameTree flame_tree_of(const Trace& trace, bool by_stack) {
    const bool has_modules = !trace.module_paths.empty();
    if (!trace.stacks.empty() && (by_stack || !has_modules)) return FlameTree::kStacks;
    if (has_modules) return FlameTree::kModules;
    return trace.ops.empty() ? FlameTree::kCategories : FlameTree::kOps;
}

/// Where in the tree of the flame graph the allocations of one trace belong.
///
/// A place is an inner node: a module, a call stack, an op or a category. Many allocations share a
/// place, so its path is computed once.
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
    FlamePlaces(const StepIndex& step, Options options)
        : trace_(step.trace()),
          storage_names_(step.storage_names()),
          options_(options),
          sites_(step.sites()) {
        switch (options_.tree) {
            case FlameTree::kModules:
                count_ = trace_.module_paths.size() + 1;
                mark_containers();
                break;
            case FlameTree::kStacks:
                count_ = trace_.stacks.size() + 1;
                break;
            case FlameTree::kOps:
                count_ = trace_.strings.size() + 1;
                break;
            case FlameTree::kCategories:
                count_ = kCategoryNames.size();
                break;
        }
    }

    std::size_t count() const { return count_; }

    std::size_t place_of(Id<Allocation> allocation) const {
        const std::size_t nowhere = count_ - 1;
        const auto op = trace_.allocations.get<&Allocation::op>(allocation);
        switch (options_.tree) {
            case FlameTree::kModules: {
                Id<ModulePath> module = module_in_name(name_of_storage(allocation));
                if (!module.valid()) module = module_of(trace_, op);
                return module.valid() ? module.index() : nowhere;
            }
            case FlameTree::kStacks: {
                const auto stack = trace_.allocations.get<&Allocation::stack>(allocation);
                return stack.valid() ? stack.index() : nowhere;
            }
            case FlameTree::kOps: {
                const StringId name = op.valid() ? trace_.ops.get<&Op::name>(op) : StringId();
                return name.valid() ? name.index() : nowhere;
            }
            case FlameTree::kCategories:
                return static_cast<std::size_t>(category_of_block(trace_, allocation));
        }
        return nowhere;
    }

    /// From the outermost level to the place itself; at most kMaxFlameDepth levels.
    std::vector<Step> path_of(std::size_t place) const {
        const bool nowhere = place + 1 == count_;
        switch (options_.tree) {
            case FlameTree::kModules:
                if (nowhere) return {{std::string(kOutsideModules)}};
                return module_steps(Id<ModulePath>(place));
            case FlameTree::kStacks:
                if (nowhere) return {{sites_.of({})}};
                return stack_steps(Id<Stack>(place));
            case FlameTree::kOps:
                if (nowhere) return {{"outside of ops"}};
                return {{std::string(trace_.text(StringId(place)))}};
            case FlameTree::kCategories:
                break;
        }
        return {{std::string(label_of(static_cast<Category>(place)))}};
    }

    /// The name of the allocation below its place.
    std::string leaf_name(Id<Allocation> allocation, std::size_t place) const {
        std::string_view name = trace_.text(name_of_storage(allocation));
        if (options_.tree == FlameTree::kModules && place + 1 < count_) {
            const StringId path = trace_.module_paths.get<&ModulePath::path>(Id<ModulePath>(place));
            name = path_below(name, trace_.text(path));
        }
        if (!name.empty()) return std::string(name);
        if (options_.tree == FlameTree::kStacks) {
            return op_in_stack(trace_.allocations.get<&Allocation::stack>(allocation));
        }
        const auto op = trace_.allocations.get<&Allocation::op>(allocation);
        if (op.valid()) return std::string(name_of_call(trace_, op));
        return options_.tree == FlameTree::kCategories ? "block" : "unnamed";
    }

    /// Whether allocations of one name are one node there.
    bool merges_names(std::size_t place) const {
        if (options_.tree != FlameTree::kModules) return options_.tree != FlameTree::kOps;
        if (!options_.combine_layers || place + 1 == count_) return false;
        return trace_.module_paths.get<&ModulePath::layer>(Id<ModulePath>(place)) >= 0;
    }

private:
    void mark_containers() {
        const auto path = trace_.module_paths.column<&ModulePath::path>();
        const auto layer = trace_.module_paths.column<&ModulePath::layer>();
        std::vector<char> has_layers(path.size(), 0), has_others(path.size(), 0);
        for (std::size_t i = 0; i < path.size(); ++i) {
            module_of_path_.emplace(trace_.text(path[i]), Id<ModulePath>(i));
            const Id<ModulePath> parent = parent_of(Id<ModulePath>(i));
            if (!parent.valid()) continue;
            (layer[i] >= 0 ? has_layers : has_others)[parent.index()] = 1;
        }
        is_container_.resize(path.size());
        for (std::size_t i = 0; i < path.size(); ++i) {
            is_container_[i] = layer[i] < 0 && has_layers[i] && !has_others[i];
        }
    }

    Id<ModulePath> parent_of(Id<ModulePath> module) const {
        return checked_parent(module, trace_.module_paths.get<&ModulePath::parent>(module));
    }

    /// The module whose path the name begins with: parameters and their gradients are made outside
    /// of modules, but are named after them.
    Id<ModulePath> module_in_name(StringId name) const {
        const auto [known, is_new] = module_of_name_.try_emplace(name.value);
        if (!is_new) return known->second;
        const std::string_view text = trace_.text(name);
        for (std::size_t dot = text.rfind('.'); dot != std::string_view::npos && dot > 0;
             dot = text.rfind('.', dot - 1)) {
            const auto module = module_of_path_.find(text.substr(0, dot));
            if (module != module_of_path_.end()) return known->second = module->second;
        }
        return {};
    }

    Id<Stack> parent_of(Id<Stack> stack) const {
        return checked_parent(stack, trace_.stacks.get<&Stack::parent>(stack));
    }

    StringId name_of_storage(Id<Allocation> allocation) const {
        const auto storage = trace_.allocations.get<&Allocation::storage>(allocation);
        return storage.valid() ? storage_names_[storage.index()] : StringId();
    }

    std::vector<Step> module_steps(Id<ModulePath> module) const {
        std::vector<Id<ModulePath>> levels;  // from the innermost
        for (Id<ModulePath> up = module; up.valid() && levels.size() < kMaxFlameDepth;
             up = parent_of(up)) {
            if (!is_container_[up.index()]) levels.push_back(up);
        }
        std::vector<Step> steps;
        std::string_view around;
        int64_t layer_around = -1;
        for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
            const ModulePath row = trace_.module_paths[*level];
            const std::string_view path = trace_.text(row.path);
            Step step{std::string(path_below(path, around))};
            if (row.layer >= 0 && row.layer != layer_around) {
                if (options_.combine_layers) {
                    step.text = without_number(step.text);
                } else {
                    step.layer = row.layer;
                }
            }
            steps.push_back(std::move(step));
            around = path;
            layer_around = row.layer;
        }
        return steps;
    }

    /// The frames of the program and its packages. Those of libraries that run ops say nothing, so
    /// they are left out; a stack without own frames has one level. Marks are the outermost levels.
    std::vector<Step> stack_steps(Id<Stack> stack) const {
        std::vector<Step> steps, marks;  // from the innermost
        std::size_t frames = 0;
        for (Id<Stack> up = stack; up.valid() && ++frames < kMaxChain; up = parent_of(up)) {
            const Id<Frame> frame = trace_.stacks.get<&Stack::frame>(up);
            if (sites_.kind_of(frame) <= CallSites::FrameKind::kPackage) {
                steps.push_back({.text = sites_.label_of(frame), .code = sites_.code_of(frame)});
            } else if (sites_.kind_of(frame) == CallSites::FrameKind::kMark) {
                marks.push_back({.text = sites_.label_of(frame)});
            }
        }
        steps.insert(steps.end(), marks.rbegin(), marks.rend());
        if (steps.empty()) steps.push_back({sites_.of(stack)});
        if (steps.size() > kMaxFlameDepth) {
            steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(kMaxFlameDepth));
        }
        std::ranges::reverse(steps);
        return steps;
    }

    /// The op that the program, or a node of autograd, called: the outermost one below that frame.
    std::string op_in_stack(Id<Stack> stack) const {
        std::string_view found;
        std::size_t frames = 0;
        for (Id<Stack> up = stack; up.valid() && ++frames < kMaxChain; up = parent_of(up)) {
            const Id<Frame> frame = trace_.stacks.get<&Stack::frame>(up);
            if (sites_.kind_of(frame) < CallSites::FrameKind::kLibrary) break;
            if (!frame.valid()) continue;
            const auto op = torch_op(trace_.text(trace_.frames.get<&Frame::function>(frame)));
            if (!op.empty()) found = op;
        }
        return found.empty() ? std::string("block") : fmt::format("aten::{}", found);
    }

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

/// Names come from files: control characters become spaces, and long names end early.
std::string shown_text(std::string_view text) {
    constexpr std::size_t kMaxBytes = 240;
    std::string shown(text);
    if (shown.size() > kMaxBytes) {
        std::size_t end = kMaxBytes;
        while (end > 0 && (shown[end] & 0xC0) == 0x80) --end;  // never inside of a character
        shown.resize(end);
        shown += "…";
    }
    std::ranges::replace_if(shown, [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; }, ' ');
    return shown;
}

// ---- the moment -------------------------------------------------------------------------------

/// The last event up to this time: the predecessor of the first later event. Times of two threads
/// may run backwards; the memory curve raises them in the same way.
int64_t event_at(const Trace& trace, int64_t time_ns) {
    const auto alloc_event = trace.allocations.column<&Allocation::alloc_event>();
    const auto free_event = trace.allocations.column<&Allocation::free_requested_event>();
    const auto alloc_ns = trace.allocations.column<&Allocation::alloc_ns>();
    const auto free_ns = trace.allocations.column<&Allocation::free_requested_ns>();
    int64_t first_later = INT64_MAX;
    for (std::size_t i = 0; i < alloc_event.size(); ++i) {
        if (alloc_ns[i] > time_ns) first_later = std::min(first_later, alloc_event[i]);
        const bool is_freed = free_event[i] >= 0;
        if (is_freed && free_ns[i] > time_ns) first_later = std::min(first_later, free_event[i]);
    }
    return first_later == INT64_MAX ? INT64_MAX : first_later - 1;
}

/// One of the two traces at the moment that is shown.
struct Moment {
    int64_t event = -1;
    int64_t time_ns = 0;  // on the trace's own clock
};

/// Of A (`index` 0) or of B.
Moment moment_of(const FlameRequest& request, std::size_t index) {
    const StepIndex& step = request.steps[index];
    if (!request.moment_ns) return {step.peak().event, step.peak().time_ns};
    const bool is_mapped = index > 0 && request.alignment;
    const double own_ns =
        is_mapped ? request.alignment->second.to_own(*request.moment_ns) : *request.moment_ns;
    const int64_t time_ns = to_clock(own_ns);
    return {event_at(step.trace(), time_ns), time_ns};
}

// ---- the tree ---------------------------------------------------------------------------------

/// Collects nodes in the order in which they are found, parents before children.
class TreeBuilder {
public:
    TreeBuilder(FlameView& view, bool merges_all) : view_(view), merges_all_(merges_all) {
        view_.nodes.push_back({.text = view_.texts.intern("all memory"), .mix = new_mix()});
    }

    /// Adds the allocations of `source` that are live after `event`. `index` 0 is A, 1 is B.
    void add(const StepIndex& source, const FlamePlaces& places, int64_t event, std::size_t index) {
        std::vector<int32_t> node_of_place(places.count(), kNone);
        const auto size = source.trace().allocations.column<&Allocation::requested_bytes>();
        const Id<Device> device = profiled_device(source.trace());
        for (const Id<Allocation> id : live_at(source.trace(), event, device)) {
            const std::size_t place = places.place_of(id);
            int32_t& parent = node_of_place[place];
            if (parent == kNone) parent = inner_node(places.path_of(place));
            const std::string name = shown_text(places.leaf_name(id, place));
            const bool merges = merges_all_ || places.merges_names(place);
            FlameNode& node = view_.nodes[leaf(parent, name, merges)];
            const Category category = category_of_block(source.trace(), id);
            if (!node.allocation.valid()) {
                node.allocation = id;  // the first is the largest
                node.in_b = index == 1;
                node.category = category;
            }
            const int64_t bytes = std::max<int64_t>(0, size[id.index()]);
            node.bytes[index] += bytes;
            node.count[index] += 1;
            if (node.mix >= 0) mix(node)[static_cast<std::size_t>(category)] += bytes;
        }
    }

    /// Sums from the leaves up to the root.
    void add_up() {
        std::vector<FlameNode>& nodes = view_.nodes;
        for (std::size_t i = nodes.size(); i-- > 0;) {
            FlameNode& node = nodes[i];
            if (node.is_tensor) node.width_bytes = std::max(node.bytes[0], node.bytes[1]);
            if (node.mix >= 0) node.category = largest(mix(node));
            if (node.parent < 0) continue;
            FlameNode& parent = nodes[static_cast<std::size_t>(node.parent)];
            for (const std::size_t t : {0u, 1u}) {
                parent.bytes[t] += node.bytes[t];
                parent.count[t] += node.count[t];
            }
            parent.width_bytes += node.width_bytes;
            parent.child_count += 1;
            CategoryBytes& sums = mix(parent);
            if (node.mix < 0) {
                sums[static_cast<std::size_t>(node.category)] += node.bytes[0] + node.bytes[1];
            } else {
                for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += mix(node)[c];
            }
        }
    }

private:
    static constexpr int32_t kNone = -1;

    int32_t new_mix() {
        view_.mixes.emplace_back();
        return static_cast<int32_t>(view_.mixes.size() - 1);
    }
    CategoryBytes& mix(const FlameNode& node) {
        return view_.mixes[static_cast<std::size_t>(node.mix)];
    }
    static Category largest(const CategoryBytes& bytes) {
        const auto most = std::ranges::max_element(bytes);
        if (*most == 0) return Category::kUnknown;
        return static_cast<Category>(most - bytes.begin());
    }

    std::size_t append(int32_t parent, StringId text) {
        view_.nodes.push_back({.text = text, .parent = parent});
        return view_.nodes.size() - 1;
    }

    std::size_t find_or_append(int32_t parent, StringId text, bool is_tensor) {
        const auto key = static_cast<uint64_t>(parent) << 32 |
                         static_cast<uint64_t>(text.value) << 1 | (is_tensor ? 1 : 0);
        const auto [found, is_new] = found_.try_emplace(key, view_.nodes.size());
        if (is_new) {
            append(parent, text);
            view_.nodes.back().mix = new_mix();
        }
        return found->second;
    }

    int32_t inner_node(const std::vector<FlamePlaces::Step>& path) {
        int32_t node = 0;
        for (const FlamePlaces::Step& step : path) {
            const StringId text = view_.texts.intern(shown_text(step.text));
            node = static_cast<int32_t>(find_or_append(node, text, false));
            FlameNode& row = view_.nodes[static_cast<std::size_t>(node)];
            row.layer = static_cast<int32_t>(std::clamp<int64_t>(step.layer, -1, INT32_MAX));
            if (!step.code.empty()) row.code = view_.texts.intern(step.code);
        }
        return node;
    }

    std::size_t leaf(int32_t parent, std::string_view name, bool merges) {
        const StringId text = view_.texts.intern(name);
        const std::size_t node = merges ? find_or_append(parent, text, true) : append(parent, text);
        view_.nodes[node].is_tensor = true;
        return node;
    }

    FlameView& view_;
    const bool merges_all_;
    std::unordered_map<uint64_t, std::size_t> found_;
};

/// Layers come first, in their order; then the largest. A file with more than kMaxLayers layers is
/// damaged; its layers count as other modules, because drawing may not visit each of them.
void sort_children(std::vector<int32_t>& children, std::vector<FlameNode>& nodes) {
    constexpr std::ptrdiff_t kMaxLayers = 4096;
    const auto node = [&](int32_t i) -> FlameNode& { return nodes[static_cast<std::size_t>(i)]; };
    const auto is_layer = [&](int32_t i) { return node(i).layer >= 0; };
    if (std::ranges::count_if(children, is_layer) > kMaxLayers) {
        for (const int32_t child : children) node(child).layer = -1;
    }
    std::ranges::stable_sort(children, [&](int32_t a, int32_t b) {
        if (is_layer(a) != is_layer(b)) return is_layer(a);
        if (is_layer(a)) return node(a).layer < node(b).layer;
        return node(a).width_bytes > node(b).width_bytes;
    });
}

/// Puts the children of each node side by side, level by level.
void arrange(FlameView& view) {
    std::vector<FlameNode> found = std::move(view.nodes);
    std::vector<std::vector<int32_t>> children(found.size());
    for (std::size_t i = 1; i < found.size(); ++i) {
        children[static_cast<std::size_t>(found[i].parent)].push_back(static_cast<int32_t>(i));
    }
    std::vector<int32_t> order{0};  // the new place -> the old one
    order.reserve(found.size());
    view.nodes.clear();
    view.nodes.reserve(found.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto old = static_cast<std::size_t>(order[i]);
        sort_children(children[old], found);
        FlameNode node = found[old];
        node.first_child = static_cast<int32_t>(order.size());
        for (const int32_t child : children[old]) order.push_back(child);
        view.nodes.push_back(node);
    }
    for (std::size_t i = 0; i < view.nodes.size(); ++i) {
        const FlameNode& node = view.nodes[i];
        for (int32_t c = 0; c < node.child_count; ++c) {
            view.nodes[static_cast<std::size_t>(node.first_child + c)].parent =
                static_cast<int32_t>(i);
        }
    }
}

void find_categories(FlameView& view) {
    const CategoryBytes& bytes = view.mixes[static_cast<std::size_t>(view.root().mix)];
    view.categories = categories_where(
        [&](Category category) { return bytes[static_cast<std::size_t>(category)] > 0; });
}

// ---- search -----------------------------------------------------------------------------------

/// Marks what matches, and everything inside of it. Walks the tree with the path in one buffer,
/// because a million paths would be a million strings.
void search(FlameView& view, const std::vector<std::string>& words) {
    struct Visit {
        int32_t node;
        std::size_t path_bytes;  // of the node around it
    };
    std::array<int64_t, 2> bytes{};
    std::array<int64_t, 2> count{};
    std::string path;
    std::vector<Visit> open{{0, 0}};
    while (!open.empty()) {
        const Visit visit = open.back();
        open.pop_back();
        FlameNode& node = view.nodes[static_cast<std::size_t>(visit.node)];
        path.resize(visit.path_bytes);
        const bool inside =
            node.parent >= 0 && view.nodes[static_cast<std::size_t>(node.parent)].matches;
        if (visit.node != 0) {
            path += '.';
            path += to_lower(view.text_of(node));
            node.matches = inside || contains_all(path, words);
        }
        if (node.matches && !inside) {
            for (const std::size_t t : {0u, 1u}) {
                bytes[t] += node.bytes[t];
                count[t] += node.count[t];
            }
        }
        for (int32_t c = 0; c < node.child_count; ++c) {
            open.push_back({node.first_child + c, path.size()});
        }
    }
    const auto of = [&](std::size_t t) {
        const int64_t total = view.root().bytes[t];
        const double share =
            total > 0 ? static_cast<double>(bytes[t]) / static_cast<double>(total) : 0;
        return fmt::format("{}, {}", format_bytes(bytes[t]), format_percent(share));
    };
    const std::size_t shown = view.mode == FlameMode::kB ? 1 : 0;
    const bool both = view.mode == FlameMode::kDifference;
    const int64_t found = both ? std::max(count[0], count[1]) : count[shown];
    view.search_text =
        found == 0 ? "nothing matches"
                   : fmt::format("{} {}: {}", format_count(found),
                                 found == 1 ? "tensor matches" : "tensors match",
                                 both ? fmt::format("A {}; B {}", of(0), of(1)) : of(shown));
}

// ---- texts ------------------------------------------------------------------------------------

const char* describe_tree(FlameTree tree) {
    constexpr std::array kTexts{"by module", "by call stack; frames of libraries are left out",
                                "by op: this trace records no modules",
                                "by category: this trace records no modules, stacks or ops"};
    return kTexts[static_cast<std::size_t>(tree)];
}

std::string describe_moment(const FlameRequest& request, const FlameView& view,
                            const std::array<Moment, 2>& moments) {
    const bool in_b = view.mode == FlameMode::kB;
    const Moment& moment = moments[in_b ? 1 : 0];
    const auto& bytes = view.root().bytes;
    if (!request.moment_ns && view.mode == FlameMode::kDifference) {
        return fmt::format("each at its peak: A {}, B {}", format_bytes(bytes[0]),
                           format_bytes(bytes[1]));
    }
    const Trace& trace = request.steps[in_b ? 1 : 0].trace();
    const std::string time = format_duration(moment.time_ns);
    const std::string phase = phase_text_at(trace, moment.time_ns);
    std::string text =
        request.moment_ns ? "at " + time : fmt::format("at the peak of {}", in_b ? "B" : "A");
    text += view.mode == FlameMode::kDifference
                ? fmt::format(": A {}, B {}", format_bytes(bytes[0]), format_bytes(bytes[1]))
                : ": " + format_bytes(bytes[in_b ? 1 : 0]);
    if (!phase.empty()) text += ", " + phase;
    if (!request.moment_ns) text += ", " + time;
    return text;
}

}  // namespace

FlameView build_flame_view(const FlameRequest& request) {
    FlameView view;
    view.has_second = request.steps.b != nullptr;
    view.mode = view.has_second ? request.mode : FlameMode::kA;
    const bool with_a = view.mode != FlameMode::kB;
    const bool with_b = view.mode != FlameMode::kA;
    const Trace& shown = request.steps[with_a ? 0 : 1].trace();
    view.tree = flame_tree_of(shown, request.by_stack);
    view.has_choice = !shown.module_paths.empty() && !shown.stacks.empty();
    view.tree_text = describe_tree(view.tree);

    const FlamePlaces::Options options{view.tree, request.combine_layers};
    std::array<Moment, 2> moments;
    TreeBuilder builder(view, view.mode == FlameMode::kDifference);
    for (std::size_t i = 0; i < request.steps.size(); ++i) {
        if (!(i == 0 ? with_a : with_b)) continue;
        const StepIndex& step = request.steps[i];
        moments[i] = moment_of(request, i);
        builder.add(step, FlamePlaces(step, options), moments[i].event, i);
    }
    builder.add_up();
    arrange(view);
    find_categories(view);
    view.moment_text = describe_moment(request, view, moments);
    if (const auto words = search_words(request.search); !words.empty()) search(view, words);
    return view;
}

DataTable flame_data(const FlameView& view) {
    DataTable table{.columns = {"path", "depth", "a_bytes", "b_bytes", "a_count", "b_count"}};
    std::vector<int64_t> depths(view.nodes.size());  // parents come before their children
    for (std::size_t i = 0; i < view.nodes.size(); ++i) {
        const FlameNode& node = view.nodes[i];
        if (node.parent >= 0) depths[i] = depths[static_cast<std::size_t>(node.parent)] + 1;
        if (i >= kMaxCopiedNodes) continue;
        table.rows.push_back({path_of(view, i), depths[i], node.bytes[0],
                              view.has_second ? Cell(node.bytes[1]) : Cell(), node.count[0],
                              view.has_second ? Cell(node.count[1]) : Cell()});
    }
    if (view.nodes.size() > kMaxCopiedNodes) {
        table.left_out = fmt::format("{} more nodes", view.nodes.size() - kMaxCopiedNodes);
    }
    return table;
}

}  // namespace profiler
