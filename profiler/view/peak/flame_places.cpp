#include "profiler/view/peak/flame_places.h"

#include "profiler/analysis/step/block_origin.h"
#include "profiler/analysis/step/layer_path.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

FlameTree flame_tree_of(const Trace& trace, bool by_stack) {
    const bool has_modules = !trace.module_paths.empty();
    if (!trace.stacks.empty() && (by_stack || !has_modules)) return FlameTree::kStacks;
    if (has_modules) return FlameTree::kModules;
    return trace.ops.empty() ? FlameTree::kCategories : FlameTree::kOps;
}

FlamePlaces::FlamePlaces(const StepIndex& step, Options options)
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

void FlamePlaces::mark_containers() {
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

Id<ModulePath> FlamePlaces::parent_of(Id<ModulePath> module) const {
    return checked_parent(module, trace_.module_paths.get<&ModulePath::parent>(module));
}

Id<Stack> FlamePlaces::parent_of(Id<Stack> stack) const {
    return checked_parent(stack, trace_.stacks.get<&Stack::parent>(stack));
}

StringId FlamePlaces::name_of_storage(Id<Allocation> allocation) const {
    const auto storage = trace_.allocations.get<&Allocation::storage>(allocation);
    return storage.valid() ? storage_names_[storage.index()] : StringId();
}

Category FlamePlaces::category_of(Id<Allocation> allocation) const {
    const auto storage = trace_.allocations.get<&Allocation::storage>(allocation);
    return storage.valid() ? trace_.storages.get<&Storage::category>(storage) : Category::kUnknown;
}

/// The module whose path the name begins with: parameters and their gradients are made outside of
/// modules, but are named after them.
Id<ModulePath> FlamePlaces::module_in_name(StringId name) const {
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

std::size_t FlamePlaces::place_of(Id<Allocation> allocation) const {
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
            return static_cast<std::size_t>(category_of(allocation));
    }
    return nowhere;
}

std::vector<FlamePlaces::Step> FlamePlaces::path_of(std::size_t place) const {
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

std::vector<FlamePlaces::Step> FlamePlaces::module_steps(Id<ModulePath> module) const {
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

/// The program's own frames. Frames of libraries between them say nothing about the program, so
/// they are left out; a stack without own frames has one level. Marks are the outermost levels.
std::vector<FlamePlaces::Step> FlamePlaces::stack_steps(Id<Stack> stack) const {
    std::vector<Step> steps, marks;  // from the innermost
    std::size_t frames = 0;
    for (Id<Stack> up = stack; up.valid() && ++frames < kMaxChain; up = parent_of(up)) {
        const Id<Frame> frame = trace_.stacks.get<&Stack::frame>(up);
        if (sites_.kind_of(frame) == CallSites::FrameKind::kProgram) {
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
    std::reverse(steps.begin(), steps.end());
    return steps;
}

/// The op that the program, or a node of autograd, called: the outermost one below that frame.
std::string FlamePlaces::op_in_stack(Id<Stack> stack) const {
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

std::string FlamePlaces::leaf_name(Id<Allocation> allocation, std::size_t place) const {
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
    if (op.valid()) return std::string(trace_.text(trace_.ops.get<&Op::name>(op)));
    return options_.tree == FlameTree::kCategories ? "block" : "unnamed";
}

bool FlamePlaces::merges_names(std::size_t place) const {
    if (options_.tree != FlameTree::kModules) return options_.tree != FlameTree::kOps;
    if (!options_.combine_layers || place + 1 == count_) return false;
    return trace_.module_paths.get<&ModulePath::layer>(Id<ModulePath>(place)) >= 0;
}

}  // namespace profiler
