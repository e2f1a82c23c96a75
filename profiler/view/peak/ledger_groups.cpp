#include "profiler/view/peak/ledger_groups.h"

#include "profiler/analysis/step/block_origin.h"
#include "profiler/analysis/step/layer_path.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/tables/signed_text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

class Grouper {
public:
    explicit Grouper(LedgerView& view) : view_(view) {}

    /// The group `name` inside of `parent` (kNone: an outermost one).
    std::size_t find_or_add(std::size_t parent, const std::string& key, std::string name) {
        std::string id = parent == kNone ? key : view_.groups[parent].id + "\n" + key;
        const auto [found, is_new] = group_of_id_.try_emplace(id, view_.groups.size());
        if (!is_new) return found->second;
        LedgerGroup group;
        group.sums.tensor = std::move(name);
        group.id = std::move(id);
        group.depth = parent == kNone ? 0 : view_.groups[parent].depth + 1;
        view_.groups.push_back(std::move(group));
        (parent == kNone ? view_.top_groups : view_.groups[parent].groups).push_back(found->second);
        return found->second;
    }

    static constexpr std::size_t kNone = LedgerLine::kNoGroup;

private:
    LedgerView& view_;
    std::map<std::string, std::size_t> group_of_id_;
};

void group_by_layer(LedgerView& view) {
    Grouper grouper(view);
    for (std::size_t i = 0; i < view.rows.size(); ++i) {
        const LedgerViewRow& row = view.rows[i];
        const auto [layer, inside] = split_layer_path(row.module_path, row.layer_path);
        const std::string name = layer.empty() ? "outside of modules" : std::string(layer);
        std::size_t group = grouper.find_or_add(Grouper::kNone, name, name);
        view.groups[group].sums.layer = row.layer;
        if (!inside.empty()) {
            group = grouper.find_or_add(group, std::string(inside), std::string(inside));
        }
        view.groups[group].rows.push_back(i);
    }
}

void group_by_kind(LedgerView& view) {
    Grouper grouper(view);
    for (std::size_t i = 0; i < view.rows.size(); ++i) {
        const LedgerViewRow& row = view.rows[i];
        const std::string path = any_layer_path(row.module_path, row.layer_path);
        const std::size_t group =
            grouper.find_or_add(Grouper::kNone, row.tensor + "\n" + path, row.tensor);
        view.groups[group].sums.module_path = path;
        view.groups[group].rows.push_back(i);
    }
}

/// `sum` becomes empty if a row says something else.
void keep_if_same(std::string& sum, const std::string& value, bool is_first) {
    if (is_first) sum = value;
    if (sum != value) sum.clear();
}

void add_row(LedgerViewRow& sums, const LedgerViewRow& row, bool is_first) {
    keep_if_same(sums.shape, row.shape, is_first);
    keep_if_same(sums.dtype, row.dtype, is_first);
    keep_if_same(sums.made_by, row.made_by, is_first);
    keep_if_same(sums.saved_by, row.saved_by, is_first);
    if (is_first) sums.category = row.category;
    if (sums.category != row.category) sums.category = Category::kUnknown;
    sums.size_bytes += row.size_bytes;
    sums.other_bytes += row.other_bytes;
    sums.lifetime_ns = std::max(sums.lifetime_ns, row.lifetime_ns);
}

Presence presence_of(const LedgerGroup& group, bool has_other) {
    const LedgerViewRow& sums = group.sums;
    if (!has_other || sums.size_bytes == sums.other_bytes) return Presence::kSame;
    if (sums.size_bytes == 0) return Presence::kAdded;
    return sums.other_bytes == 0 ? Presence::kDisappeared : Presence::kChanged;
}

/// Inner groups come after the group around them, so the sums go from the last to the first.
void add_up(LedgerView& view) {
    for (std::size_t g = view.groups.size(); g-- > 0;) {
        LedgerGroup& group = view.groups[g];
        bool is_first = true;
        for (const std::size_t row : group.rows) {
            add_row(group.sums, view.rows[row], std::exchange(is_first, false));
        }
        group.count = static_cast<int64_t>(group.rows.size());
        for (const std::size_t inner : group.groups) {
            add_row(group.sums, view.groups[inner].sums, std::exchange(is_first, false));
            group.count += view.groups[inner].count;
        }
        LedgerViewRow& sums = group.sums;
        set_sizes(sums, presence_of(group, view.has_other), sums.size_bytes, sums.other_bytes);
        set_share(sums, view.total_bytes);
        sums.lifetime_text =
            sums.lifetime_ns >= 0 ? "≤ " + format_duration(sums.lifetime_ns) : kNoValue;
    }
}

void sort_groups(std::vector<std::size_t>& groups, const LedgerView& view,
                 const LedgerRequest& request) {
    const auto layer_of = [&](std::size_t group) {
        const int64_t layer = view.groups[group].sums.layer;
        return layer < 0 ? INT64_MAX : layer;
    };
    std::sort(groups.begin(), groups.end(), [&](std::size_t a, std::size_t b) {
        const int order = compare_rows(view.groups[a].sums, view.groups[b].sums, request.sort_by);
        if (order != 0) return request.descending ? order > 0 : order < 0;
        // Layers of the same size stand in their order.
        return std::pair(layer_of(a), a) < std::pair(layer_of(b), b);
    });
}

/// The sums of a tree's branch are those of many modules, so their number stands in that column.
void count_tensors(LedgerView& view) {
    for (LedgerGroup& group : view.groups) {
        group.sums.module_path = fmt::format("{} {}", format_count(group.count),
                                             group.count == 1 ? "tensor" : "tensors");
    }
}

void name_kinds(LedgerView& view) {
    for (LedgerGroup& group : view.groups) {
        if (group.count > 1) {
            group.sums.tensor += fmt::format(" ×{}", format_count(group.count));
        }
    }
}

void add_lines(const LedgerView& view, std::size_t group, const std::set<std::string>& open,
               std::vector<LedgerLine>& lines) {
    const LedgerGroup& at = view.groups[group];
    // A tensor that stands in one layer only needs no group.
    if (at.count == 1 && at.depth == 0 && at.groups.empty() && at.sums.layer < 0) {
        lines.push_back({.row = at.rows[0], .depth = at.depth});
        return;
    }
    lines.push_back({.group = group, .depth = at.depth});
    if (!open.contains(at.id)) return;
    for (const std::size_t inner : at.groups) add_lines(view, inner, open, lines);
    for (const std::size_t row : at.rows) lines.push_back({.row = row, .depth = at.depth + 1});
}

}  // namespace

void group_rows(LedgerView& view, const LedgerRequest& request) {
    if (request.grouping == LedgerGrouping::kTensors) return;
    if (request.grouping == LedgerGrouping::kLayers) {
        group_by_layer(view);
    } else {
        group_by_kind(view);
    }
    add_up(view);
    if (request.grouping == LedgerGrouping::kKinds) {
        name_kinds(view);
    } else {
        count_tensors(view);
    }
    sort_groups(view.top_groups, view, request);
    for (LedgerGroup& group : view.groups) sort_groups(group.groups, view, request);
}

std::vector<LedgerLine> lines_of(const LedgerView& view, const std::set<std::string>& open) {
    std::vector<LedgerLine> lines;
    if (view.groups.empty()) {
        for (std::size_t i = 0; i < view.rows.size(); ++i) lines.push_back({.row = i});
    }
    for (const std::size_t group : view.top_groups) add_lines(view, group, open, lines);
    return lines;
}

const LedgerViewRow& row_of(const LedgerView& view, const LedgerLine& line) {
    return line.group == LedgerLine::kNoGroup ? view.rows[line.row] : view.groups[line.group].sums;
}

int64_t largest_bytes(const LedgerView& view, const std::vector<LedgerLine>& lines) {
    int64_t largest = 0;
    for (const LedgerLine& line : lines) {
        largest = std::max(largest, row_of(view, line).size_bytes);
    }
    return largest;
}

// ---- the selected op --------------------------------------------------------------------------

namespace {

LedgerMark mark_of(const LedgerViewRow& row, const LedgerMarkRequest& request) {
    const LedgerRowOps& ops = row.ops[request.in_b ? 1 : 0];
    LedgerMark mark;
    mark.made = is_within(*request.trace, ops.maker, request.op);
    mark.saved = std::any_of(ops.savers.begin(), ops.savers.end(), [&](Id<Op> saver) {
        return is_within(*request.trace, saver, request.op) ||
               is_within(*request.trace, saver, request.forward);
    });
    return mark;
}

}  // namespace

LedgerMarks mark_rows(const LedgerView& view, const LedgerMarkRequest& request) {
    LedgerMarks marks;
    if (!request.trace || !request.op.valid()) return marks;
    int64_t made = 0;
    int64_t saved = 0;
    for (const LedgerViewRow& row : view.rows) {
        const LedgerMark mark = mark_of(row, request);
        made += mark.made ? 1 : 0;
        saved += mark.saved ? 1 : 0;
        marks.rows.push_back(mark);
    }
    marks.groups.resize(view.groups.size());
    const auto add = [](LedgerMark& sum, const LedgerMark& mark) {
        sum.made |= mark.made;
        sum.saved |= mark.saved;
    };
    for (std::size_t g = view.groups.size(); g-- > 0;) {
        for (const std::size_t row : view.groups[g].rows) add(marks.groups[g], marks.rows[row]);
        for (const std::size_t inner : view.groups[g].groups) {
            add(marks.groups[g], marks.groups[inner]);
        }
    }
    const std::string_view name =
        request.trace->text(request.trace->ops.get<&Op::name>(request.op));
    const char* saves = request.forward.valid() ? "uses" : "saves";
    const int64_t start_ns = request.trace->ops.get<&Op::start_ns>(request.op);
    if (made + saved == 0 && start_ns < start_of_ledger_step(*request.trace)) {
        marks.text = fmt::format("This {} ran before step {}, which the ledger lists.", name,
                                 step_of_ledger(*request.trace).index() + 1);
        return marks;
    }
    marks.text = made + saved == 0
                     ? fmt::format("{} neither made nor {} one of these tensors.", name, saves)
                     : fmt::format("{} made {} and {} {} of these tensors.", name,
                                   format_count(made), saves, format_count(saved));
    return marks;
}

}  // namespace profiler
