#include "profiler/analysis/step/breakdown.h"

#include "models/config/names.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace profiler {
namespace {

constexpr std::string_view kOutsideOfModel = "outside the model";

/// Where in the module tree an allocation belongs.
struct Place {
    std::string_view name;  // "encoder.layer.3", "embeddings", "outside the model"
    int64_t layer = -1;
};

/// Maps modules, and tensors named after modules, to their layer or part of the model.
class Places {
public:
    explicit Places(const Trace& trace)
        : trace_(trace), place_of_module_path_(trace.module_paths.size()) {
        mark_layer_ancestors();
        for (std::size_t i = 0; i < trace.module_paths.size(); ++i) {
            module_path_ids_.emplace(path_of_module(trace, Id<ModulePath>(i)), i);
            place_of_module_path_[i] = find_place(i);
        }
    }

    /// Tries the tensor's name first ("encoder.layer.3.output.dense.weight"), because parameters
    /// are made outside the modules. Then the op that allocated.
    Id<ModulePath> module_of(Id<Op> op, std::string_view tensor_name) const {
        for (std::size_t dot = tensor_name.rfind('.'); dot != std::string_view::npos && dot > 0;
             dot = tensor_name.rfind('.', dot - 1)) {
            const auto module_path = module_path_ids_.find(tensor_name.substr(0, dot));
            if (module_path != module_path_ids_.end()) return Id<ModulePath>(module_path->second);
        }
        return profiler::module_of(trace_, op);
    }

    Place of(Id<ModulePath> module) const {
        if (!module.valid()) return {.name = kOutsideOfModel};
        return place_of_module_path_[module.index()];
    }

    /// None: there is no such module.
    Id<ModulePath> module_at(std::string_view path) const {
        const auto found = module_path_ids_.find(path);
        return found == module_path_ids_.end() ? Id<ModulePath>() : Id<ModulePath>(found->second);
    }

    /// The name without its layer, so that the same tensor of all layers gives one row.
    std::string_view without_layer(std::string_view tensor_name) const {
        const Place place = of(module_of({}, tensor_name));
        const std::size_t dot = place.name.size();
        const bool lies_in_layer = place.layer >= 0 && dot > 0 && tensor_name.size() > dot + 1 &&
                                   tensor_name.starts_with(place.name) && tensor_name[dot] == '.';
        return lies_in_layer ? tensor_name.substr(dot + 1) : tensor_name;
    }

private:
    Id<ModulePath> parent_of(std::size_t module_path) const {
        const Id<ModulePath> parent =
            trace_.module_paths.get<&ModulePath::parent>(Id<ModulePath>(module_path));
        return parent.valid() && parent.index() < module_path ? parent
                                                              : Id<ModulePath>();  // never a cycle
    }
    int64_t layer_of(std::size_t module_path) const {
        return trace_.module_paths.get<&ModulePath::layer>(Id<ModulePath>(module_path));
    }

    /// "encoder" holds all layers, so it is not a place itself, but its other children are.
    void mark_layer_ancestors() {
        is_above_layers_.assign(trace_.module_paths.size(), false);
        for (std::size_t i = 0; i < trace_.module_paths.size(); ++i) {
            if (layer_of(i) < 0) continue;
            for (auto up = parent_of(i); up.valid(); up = parent_of(up.index())) {
                if (layer_of(up.index()) < 0) is_above_layers_[up.index()] = true;
            }
        }
    }

    /// In a layer: the topmost module of that layer. Elsewhere: the topmost module that holds no
    /// layers.
    Place find_place(std::size_t module_path) const {
        const int64_t layer = layer_of(module_path);
        std::size_t top = module_path;
        for (auto up = parent_of(top); up.valid(); up = parent_of(top)) {
            const bool belongs =
                layer >= 0 ? layer_of(up.index()) == layer : !is_above_layers_[up.index()];
            if (!belongs) break;
            top = up.index();
        }
        return {path_of_module(trace_, Id<ModulePath>(top)), layer};
    }

    const Trace& trace_;
    std::vector<bool> is_above_layers_;
    std::vector<Place> place_of_module_path_;
    std::unordered_map<std::string_view, std::size_t> module_path_ids_;
};

std::string_view op_name(const Trace& trace, Id<Op> op) {
    return op.valid() ? name_of_call(trace, op) : std::string_view("outside of ops");
}

/// "stages.*.*.conv*.drop" of "stages.0.1.conv2.drop" in the layer "stages.0.1". A number that is a
/// whole name stays inside of a layer: "layers.*.mlp.0" is not "layers.*.mlp.2".
std::string without_numbers(std::string_view path, std::string_view layer_path) {
    std::string text;
    for (std::size_t begin = 0; begin < path.size();) {
        const std::size_t end = std::min(path.find('.', begin), path.size());
        const std::string_view name = path.substr(begin, end - begin);
        const bool stays = begin >= layer_path.size() && std::ranges::all_of(name, is_digit);
        if (begin > 0) text += '.';
        bool is_in_number = false;
        for (const char c : name) {
            const bool goes = !stays && is_digit(c);
            if (!goes) text += c;
            if (goes && !is_in_number) text += '*';
            is_in_number = goes;
        }
        begin = end + 1;
    }
    return text;
}

struct Group {
    std::string name;
    std::string_view code;
};

/// What a group takes, whether it lives at the peak or is saved.
struct Part {
    Category category = Category::kUnknown;
    Id<Op> op;  // that made it, or saved it first
    Id<ModulePath> module;
    std::string_view tensor;
    Id<Stack> stack;
    int64_t size_bytes = 0;
};

class Grouping {
public:
    Grouping(const Trace& trace, GroupBy by)
        : trace_(trace),
          by_(by),
          places_(trace),
          sites_(trace),
          storage_names_(names_of_storages(trace)) {}

    Part part_of(Id<Allocation> id) const {
        const Allocation allocation = trace_.allocations[id];
        const std::string_view tensor =
            allocation.storage.valid() ? trace_.text(storage_names_[allocation.storage.index()])
                                       : std::string_view();
        return {.category = category_of_block(trace_, id),
                .op = allocation.op,
                .module = places_.module_of(allocation.op, tensor),
                .tensor = tensor,
                .stack = allocation.stack,
                .size_bytes = allocation.requested_bytes};
    }

    Part part_of(const LedgerRow& row) const {
        const Id<Stack> stack = row.allocation.valid()
                                    ? trace_.allocations.get<&Allocation::stack>(row.allocation)
                                    : Id<Stack>();
        return {.category = row.category,
                .op = row.saving_ops.empty() ? Id<Op>() : row.saving_ops.front(),
                .module = places_.module_at(row.module_path),
                .tensor = row.tensor,
                .stack = stack,
                .size_bytes = row.size_bytes};
    }

    Group of(const Part& part) const {
        switch (by_) {
            case GroupBy::kClass:
                return {std::string(name_of(part.category))};
            case GroupBy::kOp:
                return {std::string(op_name(trace_, part.op))};
            case GroupBy::kLayer:
                return {std::string(places_.of(part.module).name)};
            case GroupBy::kModule:
                if (!part.module.valid()) return {std::string(kOutsideOfModel)};
                return {without_numbers(path_of_module(trace_, part.module),
                                        layer_path_of(trace_, part.module))};
            case GroupBy::kModuleType:
                return {type_of(part.module)};
            case GroupBy::kLine:
                if (sites_.is_of_python(part.stack) || trace_.stacks.empty() ||
                    part.category == Category::kUnknown) {
                    return {.name = sites_.of(part.stack), .code = sites_.code_of(part.stack)};
                }
                // Also where a stack of C++ alone says no line: the class says more.
                return {fmt::format("no stack, {}", name_of(part.category))};
            case GroupBy::kTensor:
                break;
        }
        if (!part.tensor.empty()) return {std::string(places_.without_layer(part.tensor))};
        return {fmt::format("unnamed, {}", op_name(trace_, part.op))};
    }

private:
    /// Without a recorded class, the last name of the path.
    std::string type_of(Id<ModulePath> module) const {
        if (!module.valid()) return std::string(kOutsideOfModel);
        const std::string_view type =
            trace_.text(trace_.module_paths.get<&ModulePath::type>(module));
        if (!type.empty()) return std::string(type);
        const std::string_view path = path_of_module(trace_, module);
        return without_numbers(path.substr(path.rfind('.') + 1), {});
    }

    const Trace& trace_;
    GroupBy by_;
    Places places_;
    CallSites sites_;
    std::vector<StringId> storage_names_;
};

/// Largest first.
std::vector<BreakdownRow> break_down(const Grouping& grouping, const auto& parts) {
    std::vector<BreakdownRow> rows;
    std::unordered_map<std::string, std::size_t> index_of_name;
    for (const auto& item : parts) {
        const Part part = grouping.part_of(item);
        const Group group = grouping.of(part);
        const auto [found, is_new] = index_of_name.try_emplace(group.name, rows.size());
        if (is_new) rows.push_back({.name = group.name, .code = std::string(group.code)});
        BreakdownRow& row = rows[found->second];
        row.size_bytes += part.size_bytes;
        row.count += 1;
        row.by_category[static_cast<std::size_t>(part.category)] += part.size_bytes;
    }
    std::ranges::stable_sort(rows, std::greater(), &BreakdownRow::size_bytes);
    return rows;
}

}  // namespace

std::optional<GroupBy> find_group_by(std::string_view name) {
    return models::find_name<GroupBy>(kGroupByNames, name);
}

GroupBy default_group_by(const Trace& trace) {
    const bool knows_classes = !trace.ops.empty() || has_note(trace, kToldCategories);
    return !knows_classes && !trace.stacks.empty() ? GroupBy::kLine : GroupBy::kClass;
}

std::vector<BreakdownRow> break_down(const Trace& trace, const PeakReport& peak, GroupBy by) {
    return break_down(Grouping(trace, by), peak.live);
}

std::vector<BreakdownRow> break_down(const Trace& trace, const Ledger& ledger, GroupBy by) {
    return break_down(Grouping(trace, by), ledger.rows);
}

}  // namespace profiler
