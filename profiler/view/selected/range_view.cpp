#include "profiler/view/selected/range_view.h"

#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

/// The range on the own clock of a trace.
struct OwnRange {
    int64_t start_ns = 0;
    int64_t end_ns = 0;

    bool holds(int64_t time_ns) const { return time_ns >= start_ns && time_ns < end_ns; }
    /// The part of a span that lies in the range.
    int64_t part_of(int64_t from_ns, int64_t to_ns) const {
        return std::max<int64_t>(0, std::min(to_ns, end_ns) - std::max(from_ns, start_ns));
    }
};

int64_t own_clock(double time_ns) { return std::llround(std::clamp(time_ns, -0x1p60, 0x1p60)); }

struct LiveBytes {
    int64_t at_start = 0;
    int64_t at_end = 0;
    int64_t highest = 0;
};

LiveBytes live_in(const MemoryCurve& curve, const OwnRange& range) {
    LiveBytes live;
    live.at_start = live.highest = curve.at(range.start_ns).allocated_bytes;
    live.at_end = curve.at(range.end_ns).allocated_bytes;
    curve.for_each_change([&](const CurveBin& after, bool is_segment) {
        if (is_segment || !range.holds(after.time_ns)) return;
        live.highest = std::max(live.highest, after.allocated_bytes);
    });
    return live;
}

/// What is summed over one tensor (of a module) or one op, in A and B.
struct Sum {
    std::array<int64_t, 2> values{};
    Category category = Category::kUnknown;
    Id<Allocation> largest;
    int64_t largest_bytes = -1;
    bool in_b = false;
};
using Place = std::pair<std::string_view, std::string_view>;  // module, name

class RangeBuilder {
public:
    explicit RangeBuilder(const RangeRequest& request) : request_(request) {}

    RangeView build() {
        const double length_ns = request_.end_ns - request_.start_ns;
        if (!request_.steps.a || !(length_ns > 0) || length_ns > 0x1p60) return {};
        view_.has_other = request_.steps.size() > 1 && request_.alignment;
        for (side_ = 0; side_ < (view_.has_other ? 2U : 1U); ++side_) add_source();
        view_.figures = {figure("time", &Figures::duration_ns, format_duration),
                         figure("live at the start", &Figures::start_bytes, format_bytes),
                         figure("live at the end", &Figures::end_bytes, format_bytes),
                         figure("peak inside", &Figures::peak_bytes, format_bytes),
                         figure("allocated", &Figures::allocated_bytes, format_bytes),
                         figure("freed", &Figures::freed_bytes, format_bytes)};
        view_.held = top_tensors(held_, view_.has_other ? difference : higher);
        view_.tensors = top_tensors(allocated_, higher);
        view_.ops_by_time = top(op_times_, format_duration);
        view_.ops_by_bytes = top(op_bytes_, format_bytes);
        return std::move(view_);
    }

private:
    using Format = std::string (*)(int64_t);
    struct Figures {
        int64_t duration_ns = 0;
        int64_t start_bytes = 0;
        int64_t end_bytes = 0;
        int64_t peak_bytes = 0;
        int64_t allocated_bytes = 0;
        int64_t freed_bytes = 0;
    };

    const Trace& trace() const { return request_.steps[side_].trace(); }

    void add_source() {
        const TimeMap& map = map_of(request_.alignment, side_);
        range_ = {own_clock(map.to_own(request_.start_ns)), own_clock(map.to_own(request_.end_ns))};
        const LiveBytes live = live_in(request_.steps[side_].curve(), range_);
        Figures& figures = figures_[side_];
        figures.duration_ns = range_.end_ns - range_.start_ns;
        figures.start_bytes = live.at_start;
        figures.end_bytes = live.at_end;
        figures.peak_bytes = live.highest;
        find_layers();
        add_allocations(figures);
        add_times();
        if (side_ == 0) view_.phase_text = describe_phases();
    }

    std::string describe_phases() const {
        const std::string first = phase_text_at(trace(), range_.start_ns);
        const std::string last = phase_text_at(trace(), range_.end_ns);
        if (first == last || last.empty()) return first;
        return first.empty() ? last : fmt::format("{} to {}", first, last);
    }

    void find_layers() {
        for (std::size_t i = 0; i < trace().module_paths.size(); ++i) {
            const Id<ModulePath> id(i);
            const ModulePath module = trace().module_paths[id];
            if (module.layer < 0) continue;
            layers_.try_emplace(trace().text(module.path),
                                Layer{module.layer, layer_path_of(trace(), id)});
        }
    }

    struct Layer {
        int64_t index = -1;
        std::string_view path;  // empty outside of layers
    };
    Layer layer_of(std::string_view module_path) const {
        const auto found = layers_.find(module_path);
        return found == layers_.end() ? Layer() : found->second;
    }

    void add_allocations(Figures& figures) {
        const Trace& t = trace();
        const Id<Device> profiled = profiled_device(t);
        const auto devices = t.allocations.column<&Allocation::device>();
        const auto alloc_ns = t.allocations.column<&Allocation::alloc_ns>();
        const auto free_ns = t.allocations.column<&Allocation::free_requested_ns>();
        const auto events = t.allocations.column<&Allocation::free_requested_event>();
        const auto bytes = t.allocations.column<&Allocation::requested_bytes>();
        for (std::size_t i = 0; i < t.allocations.size(); ++i) {
            if (!is_on(profiled, devices[i])) continue;
            const Id<Allocation> id(i);
            if (events[i] >= 0 && range_.holds(free_ns[i])) figures.freed_bytes += bytes[i];
            const bool is_freed = events[i] >= 0 && free_ns[i] < range_.end_ns;
            if (alloc_ns[i] < range_.end_ns && !is_freed) add_tensor(held_, id, bytes[i]);
            if (!range_.holds(alloc_ns[i])) continue;
            figures.allocated_bytes += bytes[i];
            const Id<Op> maker = add_tensor(allocated_, id, bytes[i]);
            if (maker.valid()) op_bytes_[{{}, name_of(maker)}].values[side_] += bytes[i];
        }
    }

    /// Returns the op that made it.
    Id<Op> add_tensor(std::map<Place, Sum>& sums, Id<Allocation> id, int64_t size_bytes) {
        const BlockOrigin origin =
            origin_of(trace(), request_.steps[side_].storage_names(), {}, id);
        Sum& sum = sums[{origin.module_path, origin.name}];
        sum.values[side_] += size_bytes;
        if (size_bytes > sum.largest_bytes && (side_ == 0 || !sum.largest.valid())) {
            sum.largest = id;
            sum.largest_bytes = size_bytes;
            sum.category = origin.category;
            sum.in_b = side_ == 1;
        }
        return origin.maker;
    }

    std::string_view name_of(Id<Op> op) const { return name_of_call(trace(), op); }

    void add_times() {
        if (trace().kernels.empty() && trace().memcpys.empty()) return add_calls();
        view_.counts_kernels = true;
        add_launches(trace().kernels);
        add_launches(trace().memcpys);
    }

    template <typename Launch>
    void add_launches(const Table<Launch>& launches) {
        const auto ops = launches.template column<&Launch::op>();
        const auto start_ns = launches.template column<&Launch::start_ns>();
        const auto end_ns = launches.template column<&Launch::end_ns>();
        for (std::size_t i = 0; i < launches.size(); ++i) {
            const int64_t inside_ns = range_.part_of(start_ns[i], end_ns[i]);
            if (inside_ns > 0 && ops[i].valid()) {
                op_times_[{{}, name_of(ops[i])}].values[side_] += inside_ns;
            }
        }
    }

    /// Without kernels: the time of each call less that of the calls in it.
    void add_calls() {
        const auto parents = trace().ops.column<&Op::parent>();
        const auto start_ns = trace().ops.column<&Op::start_ns>();
        const auto end_ns = trace().ops.column<&Op::end_ns>();
        const auto part = [&](std::size_t i) { return range_.part_of(start_ns[i], end_ns[i]); };
        std::vector<int64_t> own_ns(parents.size(), 0);
        for (std::size_t i = 0; i < parents.size(); ++i) {
            own_ns[i] += part(i);
            const Id<Op> parent = parents[i];
            if (parent.valid() && parent.index() < i) own_ns[parent.index()] -= part(i);
        }
        for (std::size_t i = 0; i < own_ns.size(); ++i) {
            if (own_ns[i] > 0) op_times_[{{}, name_of(Id<Op>(i))}].values[side_] += own_ns[i];
        }
    }

    void set_texts(RangeRow& row, Format format, bool with_zero) const {
        for (std::size_t side = 0; side < 2; ++side) {
            const int64_t value = row.values[side];
            row.texts[side] = value == 0 && !with_zero ? kNoValue : format(value);
        }
        if (!view_.has_other) return;
        row.difference = row.values[1] - row.values[0];
        row.difference_text = row.difference == 0
                                  ? kNoValue
                                  : with_sign(row.difference, format(std::abs(row.difference)));
    }

    RangeRow figure(const char* name, int64_t Figures::*member, Format format) const {
        RangeRow row{.name = name};
        row.values = {figures_[0].*member, figures_[1].*member};
        set_texts(row, format, true);
        return row;
    }

    using Size = int64_t (*)(const RangeRow&);
    static int64_t higher(const RangeRow& row) { return std::max(row.values[0], row.values[1]); }
    static int64_t difference(const RangeRow& row) {
        return std::abs(row.values[1] - row.values[0]);
    }

    /// Largest first; of equal ones, the first stay first.
    static void keep_largest(std::vector<RangeRow>& rows, std::size_t most, Size size_of) {
        std::ranges::stable_sort(rows, std::greater(), size_of);
        if (rows.size() > most) rows.resize(most);
    }

    static RangeRow row_of(const Place& place, const Sum& sum) {
        return {.name = std::string(place.second.empty() ? "(no name)" : place.second),
                .module_path = std::string(place.first),
                .category = sum.category,
                .values = sum.values,
                .allocation = sum.largest,
                .in_b = sum.in_b};
    }

    std::vector<RangeRow> top(const std::map<Place, Sum>& sums, Format format) const {
        std::vector<RangeRow> rows;
        for (const auto& [place, sum] : sums) {
            if (sum.values != std::array<int64_t, 2>{}) rows.push_back(row_of(place, sum));
        }
        keep_largest(rows, RangeView::kMostRows, higher);
        for (RangeRow& row : rows) set_texts(row, format, false);
        return rows;
    }

    /// One row for the tensor of this name in the same module of all layers.
    std::vector<RangeRow> top_tensors(const std::map<Place, Sum>& sums, Size size_of) const {
        using Part = std::pair<int64_t, RangeRow>;  // layer
        std::map<std::pair<std::string, std::string_view>, std::vector<Part>> groups;
        for (const auto& [place, sum] : sums) {
            if (sum.values == std::array<int64_t, 2>{}) continue;
            const Layer layer = layer_of(place.first);
            groups[{any_layer_path(place.first, layer.path), place.second}].emplace_back(
                layer.index, row_of(place, sum));
        }
        std::vector<RangeRow> rows;
        for (auto& [key, parts] : groups) {
            std::ranges::sort(parts, {}, &Part::first);
            rows.push_back(sum_of(key.first, parts));
        }
        std::erase_if(rows, [&](const RangeRow& row) { return size_of(row) == 0; });
        keep_largest(rows, RangeView::kMostRows, size_of);
        for (RangeRow& row : rows) {
            set_texts(row, format_bytes, false);
            keep_largest(row.parts, RangeView::kMostParts, size_of);
            for (RangeRow& part : row.parts) set_texts(part, format_bytes, false);
        }
        return rows;
    }

    static RangeRow sum_of(const std::string& module_path,
                           std::vector<std::pair<int64_t, RangeRow>>& parts) {
        if (parts.size() == 1) return std::move(parts[0].second);
        RangeRow sum = parts[0].second;
        sum.name += fmt::format(" ×{}", format_count(static_cast<int64_t>(parts.size())));
        sum.module_path = module_path;
        sum.values = {};
        for (auto& [layer, part] : parts) {
            for (std::size_t side = 0; side < 2; ++side) sum.values[side] += part.values[side];
            part.name = fmt::format("layer {}", layer);
            sum.parts.push_back(std::move(part));
        }
        return sum;
    }

    const RangeRequest& request_;
    RangeView view_;
    std::size_t side_ = 0;  // the trace that is read
    OwnRange range_;
    std::array<Figures, 2> figures_;
    std::map<Place, Sum> held_, allocated_;
    std::unordered_map<std::string_view, Layer> layers_;  // by module path, of A and B
    std::map<Place, Sum> op_times_;
    std::map<Place, Sum> op_bytes_;
};

}  // namespace

RangeView build_range_view(const RangeRequest& request) { return RangeBuilder(request).build(); }

namespace {

void add_values(std::vector<Cell>& cells, const RangeRow& row, bool has_other) {
    cells.emplace_back(row.values[0]);
    if (!has_other) return;
    cells.emplace_back(row.values[1]);
    cells.emplace_back(row.difference);
}

}  // namespace

DataTable range_data(const RangeView& view, const std::vector<RangeRow>& rows,
                     const std::string& unit) {
    DataTable table{.columns = {"name", "scope", "a_" + unit}};
    if (view.has_other) {
        table.columns.push_back("b_" + unit);
        table.columns.push_back("difference_" + unit);
    }
    for (const RangeRow& row : rows) {
        std::vector<Cell> cells{row.name, row.module_path};
        add_values(cells, row, view.has_other);
        table.rows.push_back(std::move(cells));
    }
    return table;
}

DataTable range_figures_data(const RangeView& view) {
    DataTable table{.columns = {"name", "unit", "a"}};
    if (view.has_other) table.columns.insert(table.columns.end(), {"b", "difference"});
    for (const RangeRow& row : view.figures) {
        std::vector<Cell> cells{row.name, row.name == "time" ? "ns" : "bytes"};
        add_values(cells, row, view.has_other);
        table.rows.push_back(std::move(cells));
    }
    return table;
}

}  // namespace profiler
