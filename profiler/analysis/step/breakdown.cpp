#include "profiler/analysis/step/breakdown.h"

#include "models/config/names.h"
#include "profiler/analysis/step/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace profiler {
namespace {

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
    Place of(Id<Op> op, std::string_view tensor_name) const {
        for (std::size_t dot = tensor_name.rfind('.'); dot != std::string_view::npos && dot > 0;
             dot = tensor_name.rfind('.', dot - 1)) {
            const auto module_path = module_path_ids_.find(tensor_name.substr(0, dot));
            if (module_path != module_path_ids_.end())
                return place_of_module_path_[module_path->second];
        }
        for (; op.valid(); op = trace_.ops.get<&Op::parent>(op)) {
            if (const auto module_path = module_path_of(op); module_path.valid())
                return place_of_module_path_[module_path.index()];
        }
        return {.name = "outside the model"};
    }

    /// The name without its layer, so that the same tensor of all layers gives one row.
    std::string_view without_layer(std::string_view tensor_name) const {
        const Place place = of({}, tensor_name);
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
    Id<ModulePath> module_path_of(Id<Op> op) const {
        const Id<ModulePath> module_path = trace_.ops.get<&Op::module_path>(op);
        if (module_path.valid()) return module_path;
        const Id<Op> forward = trace_.ops.get<&Op::forward>(op);
        return forward.valid() ? trace_.ops.get<&Op::module_path>(forward) : Id<ModulePath>();
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

struct Group {
    std::string name;
    int64_t layer = -1;
    std::string_view code;
};

class Grouping {
public:
    Grouping(const Trace& trace, GroupBy by)
        : trace_(trace),
          by_(by),
          places_(trace),
          sites_(trace),
          storage_names_(names_of_storages(trace)) {}

    Group of(const Allocation& allocation, Category category) const {
        const std::string_view tensor =
            allocation.storage.valid() ? trace_.text(storage_names_[allocation.storage.index()])
                                       : std::string_view();
        switch (by_) {
            case GroupBy::kClass:
                return {std::string(name_of(category))};
            case GroupBy::kOp:
                return {std::string(op_name(trace_, allocation.op))};
            case GroupBy::kLayer: {
                const Place place = places_.of(allocation.op, tensor);
                return {std::string(place.name), place.layer};
            }
            case GroupBy::kLine:
                if (sites_.is_of_python(allocation.stack) || trace_.stacks.empty() ||
                    category == Category::kUnknown) {
                    return {.name = sites_.of(allocation.stack),
                            .code = sites_.code_of(allocation.stack)};
                }
                // Also where a stack of C++ alone says no line: the class says more.
                return {fmt::format("no stack, {}", name_of(category))};
            case GroupBy::kTensor:
                break;
        }
        if (!tensor.empty()) return {std::string(places_.without_layer(tensor))};
        return {fmt::format("unnamed, {}", op_name(trace_, allocation.op))};
    }

private:
    const Trace& trace_;
    GroupBy by_;
    Places places_;
    CallSites sites_;
    std::vector<StringId> storage_names_;
};

}  // namespace

std::optional<GroupBy> find_group_by(std::string_view name) {
    return models::find_name<GroupBy>(kGroupByNames, name);
}

GroupBy default_group_by(const Trace& trace) {
    return trace.ops.empty() && !trace.stacks.empty() ? GroupBy::kLine : GroupBy::kClass;
}

std::vector<BreakdownRow> break_down(const Trace& trace, const PeakReport& peak, GroupBy by) {
    struct Entry {
        BreakdownRow row;
        int64_t layer;
    };
    const Grouping grouping(trace, by);
    std::vector<Entry> entries;
    std::unordered_map<std::string, std::size_t> index_of_name;
    for (const Id<Allocation> id : peak.live) {
        const Allocation allocation = trace.allocations[id];
        const Category category = category_of_block(trace, id);
        const Group group = grouping.of(allocation, category);
        const auto [found, is_new] = index_of_name.try_emplace(group.name, entries.size());
        if (is_new) {
            entries.push_back({{.name = group.name, .code = std::string(group.code)}, group.layer});
        }
        BreakdownRow& row = entries[found->second].row;
        row.size_bytes += allocation.requested_bytes;
        row.count += 1;
        row.by_category[static_cast<std::size_t>(category)] += allocation.requested_bytes;
    }

    // Layers come first, in their order. The rest is sorted by size.
    std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) {
        if (a.layer >= 0 && b.layer >= 0) return a.layer < b.layer;
        if ((a.layer >= 0) != (b.layer >= 0)) return a.layer >= 0;
        return a.row.size_bytes > b.row.size_bytes;
    });
    std::vector<BreakdownRow> rows;
    for (Entry& entry : entries) rows.push_back(std::move(entry.row));
    return rows;
}

}  // namespace profiler
