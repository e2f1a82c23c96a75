#include "profiler/view/peak/ledger_view.h"

#include "profiler/analysis/step/ledger_match.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/search_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace profiler {
namespace {

LedgerViewRow build_row(const LedgerRow& row) {
    LedgerViewRow view;
    view.tensor = row.tensor;
    view.module_path = row.module_path;
    view.op = row.op;
    view.made_by = row.made_by;
    view.shape = row.shape;
    view.dtype = name_of(row.dtype);
    view.category = row.category;
    std::vector<std::string_view> savers = row.saved_by;
    savers.erase(std::unique(savers.begin(), savers.end()), savers.end());
    view.saved_by = fmt::format("{}", fmt::join(savers, ", "));
    view.layer = row.layer;
    view.layer_path = row.layer_path;
    view.storage = row.storage;
    view.allocation = row.allocation;
    if (row.saved_ns >= 0 && row.released_ns >= row.saved_ns) {
        view.lifetime_ns = row.released_ns - row.saved_ns;
    }
    view.lifetime_text = view.lifetime_ns >= 0 ? format_duration(view.lifetime_ns) : kNoValue;
    return view;
}

void set_closed_form(LedgerViewRow& view, const ClosedFormRow& row) {
    view.closed_form_bytes = row.size_bytes;
    view.closed_form_text = fmt::format("{} = {}", row.formula, format_bytes(row.size_bytes));
    view.differs_from_closed_form = row.size_bytes != view.size_bytes;
}

/// Whether the tensor is saved at some time in the span. Times that are not known lie before or
/// after everything.
bool lives_in(const std::optional<LedgerSpan>& span, const LedgerRow& row) {
    if (!span) return true;
    const bool ends_before = row.released_ns >= 0 && row.released_ns <= span->start_ns;
    return !ends_before && row.saved_ns < span->end_ns;
}

/// All rows of the first ledger, then the rows of the second ledger alone.
std::vector<LedgerViewRow> build_rows(const LedgerRequest& request) {
    const Ledger& first = request.steps.a->ledger();
    const Ledger* second = request.steps.b ? &request.steps.b->ledger() : nullptr;
    std::vector<std::size_t> partner(first.rows.size(), kNoRow);
    std::vector<std::size_t> formula(first.rows.size(), kNoRow);
    if (second) partner = match_ledgers(first, *second);
    const ClosedFormCheck* const check = request.steps.a->closed_form();
    if (check) {
        const int64_t num_layers = request.steps.a->trace().run().num_layers;
        formula = match_closed_form(first, check->form, num_layers);
    }

    std::vector<LedgerViewRow> rows;
    std::vector<char> is_matched(second ? second->rows.size() : 0, 0);
    for (std::size_t i = 0; i < first.rows.size(); ++i) {
        const int64_t size_bytes = first.rows[i].size_bytes;
        LedgerViewRow view = build_row(first.rows[i]);
        view.ops[0] = {first.rows[i].maker, first.rows[i].saving_ops};
        view.is_in_span = lives_in(request.spans[0], first.rows[i]);
        if (!second) {
            set_sizes(view, Presence::kSame, size_bytes, size_bytes);
        } else if (partner[i] == kNoRow) {
            set_sizes(view, Presence::kDisappeared, size_bytes, 0);
        } else {
            const int64_t other_bytes = second->rows[partner[i]].size_bytes;
            is_matched[partner[i]] = 1;
            view.is_in_span |= lives_in(request.spans[1], second->rows[partner[i]]);
            view.ops[1] = {second->rows[partner[i]].maker, second->rows[partner[i]].saving_ops};
            set_sizes(view, other_bytes == size_bytes ? Presence::kSame : Presence::kChanged,
                      size_bytes, other_bytes);
        }
        set_share(view, first.total_bytes);
        if (formula[i] != kNoRow) set_closed_form(view, check->form.rows[formula[i]]);
        rows.push_back(std::move(view));
    }
    for (std::size_t i = 0; i < is_matched.size(); ++i) {
        if (is_matched[i]) continue;
        LedgerViewRow view = build_row(second->rows[i]);
        view.ops[1] = {second->rows[i].maker, second->rows[i].saving_ops};
        view.is_in_span = lives_in(request.spans[1], second->rows[i]);
        set_sizes(view, Presence::kAdded, 0, second->rows[i].size_bytes);
        set_share(view, first.total_bytes);
        rows.push_back(std::move(view));
    }
    return rows;
}

bool matches(const LedgerViewRow& row, const std::vector<std::string>& words) {
    if (words.empty()) return true;
    const std::string text =
        to_lower(fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", row.tensor, row.module_path, row.made_by,
                             row.shape, row.dtype, label_of(row.category), row.saved_by));
    return contains_all(text, words);
}

/// Compares text so that layer 2 comes before layer 10: runs of digits count as numbers.
int compare_natural(std::string_view a, std::string_view b) {
    const auto number_end = [](std::string_view text, std::size_t at) {
        while (at < text.size() && is_digit(text[at])) ++at;
        return at;
    };
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        if (is_digit(a[i]) && is_digit(b[j])) {
            const std::string_view x = a.substr(i, number_end(a, i) - i);
            const std::string_view y = b.substr(j, number_end(b, j) - j);
            if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
            if (const int order = x.compare(y); order != 0) return order;
            i += x.size();
            j += y.size();
        } else {
            if (to_lower(a[i]) != to_lower(b[j])) return to_lower(a[i]) < to_lower(b[j]) ? -1 : 1;
            ++i;
            ++j;
        }
    }
    return a.size() - i == b.size() - j ? 0 : a.size() - i < b.size() - j ? -1 : 1;
}

template <typename T>
int compare_values(T a, T b) {
    return a < b ? -1 : b < a ? 1 : 0;
}

/// The size by which a row is sorted. A tensor that only B saves is sorted by its size in B, so
/// that it does not fall to the end of the list.
int64_t larger_size(const LedgerViewRow& row) {
    return row.presence == Presence::kAdded ? row.other_bytes : row.size_bytes;
}

/// Over the rows that the filter leaves. `is_filtered`: it hides some.
void describe_difference(LedgerView& view, const std::vector<LedgerViewRow>& rows,
                         bool is_filtered) {
    int64_t disappeared = 0;
    int64_t added = 0;
    int64_t changed_bytes = 0;
    for (const LedgerViewRow& row : rows) {
        view.shown_difference_bytes += row.difference_bytes;
        if (row.presence == Presence::kDisappeared) {
            ++disappeared;
            view.disappeared_bytes += row.size_bytes;
        } else if (row.presence == Presence::kAdded) {
            ++added;
            view.added_bytes += row.other_bytes;
        } else {
            changed_bytes += row.difference_bytes;
        }
    }
    const int64_t difference = view.shown_difference_bytes;
    const std::string total = difference == 0 ? "keeps as many bytes for backward"
                                              : fmt::format("keeps {} {} for backward",
                                                            format_bytes(std::abs(difference)),
                                                            difference < 0 ? "less" : "more");
    std::vector<std::string> parts;
    const auto add_part = [&](int64_t count, int64_t bytes, const char* one, const char* many) {
        if (count == 0) return;
        const char* noun = !parts.empty() ? "" : count == 1 ? " tensor" : " tensors";
        parts.push_back(
            fmt::format("{}{} ({}) {}", count, noun, format_bytes(bytes), count == 1 ? one : many));
    };
    add_part(disappeared, view.disappeared_bytes, "disappears", "disappear");
    add_part(added, view.added_bytes, "is added", "are added");
    if (changed_bytes != 0) {
        parts.push_back(fmt::format("others change by {}", signed_bytes(changed_bytes)));
    }
    view.comparison_text =
        fmt::format("{}B {}{}{}.", is_filtered ? "Of what the filter shows, " : "", total,
                    parts.empty() ? "" : ": ", fmt::join(parts, ", "));
}

/// Tensors of one ledger that are shown.
struct Total {
    int64_t count = 0;
    int64_t bytes = 0;

    void add(int64_t size_bytes) {
        ++count;
        bytes += size_bytes;
    }
};

/// "7 of 460 tensors, 12.0 MiB of 14.2 GiB"; all of them: "460 tensors, 14.2 GiB".
std::string text_of(const Total& shown, const Ledger& ledger) {
    const auto all = static_cast<int64_t>(ledger.rows.size());
    const bool is_all = shown.count == all;
    const std::string of_count = is_all ? "" : format_count(shown.count) + " of ";
    const std::string of_bytes = is_all ? "" : format_bytes(shown.bytes) + " of ";
    return fmt::format("{}{} {}, {}{}", of_count, format_count(all),
                       all == 1 ? "tensor" : "tensors", of_bytes, format_bytes(ledger.total_bytes));
}

void add_totals(LedgerView& view, const LedgerRequest& request) {
    Total a, b;
    for (const LedgerViewRow& row : view.rows) {
        if (row.presence != Presence::kAdded) a.add(row.size_bytes);
        if (row.presence != Presence::kDisappeared) b.add(row.other_bytes);
    }
    view.total_text = text_of(a, request.steps.a->ledger());
    if (!view.has_other) return;
    view.total_text =
        fmt::format("A {}; B {}", view.total_text, text_of(b, request.steps.b->ledger()));
}

}  // namespace

void set_sizes(LedgerViewRow& view, Presence presence, int64_t size_bytes, int64_t other_bytes) {
    view.presence = presence;
    view.size_bytes = size_bytes;
    view.other_bytes = other_bytes;
    view.difference_bytes = other_bytes - size_bytes;
    const bool is_in_first = presence != Presence::kAdded;
    view.size_text = is_in_first ? format_bytes(size_bytes) : kNoValue;
    view.exact_text = format_exact_bytes(is_in_first ? size_bytes : other_bytes);
    view.other_text = presence == Presence::kDisappeared ? kNoValue : format_bytes(other_bytes);
    view.difference_text = signed_bytes(view.difference_bytes);
}

void set_share(LedgerViewRow& view, int64_t total_bytes) {
    if (total_bytes > 0) {
        view.share = static_cast<double>(view.size_bytes) / static_cast<double>(total_bytes);
    }
    view.share_text = view.presence == Presence::kAdded ? kNoValue : format_percent(view.share);
}

int compare_rows(const LedgerViewRow& a, const LedgerViewRow& b, LedgerColumn column) {
    switch (column) {
        case LedgerColumn::kCategory:
            return compare_values(a.category, b.category);
        case LedgerColumn::kSize:
        case LedgerColumn::kShare:
            return compare_values(larger_size(a), larger_size(b));
        default: {
            const auto& value = table_column(column).value;
            const Cell x = value(a), y = value(b);
            const auto* text = std::get_if<std::string>(&x);
            return text ? compare_natural(*text, std::get<std::string>(y)) : compare_values(x, y);
        }
    }
}

LedgerView build_ledger_view(const LedgerRequest& request) {
    LedgerView view;
    const Steps& steps = request.steps;
    if (!steps.a) return view;
    std::vector<LedgerViewRow> rows = build_rows(request);
    view.has_other = steps.b != nullptr;
    view.has_closed_form = steps.a->closed_form() != nullptr;
    view.row_count_total = rows.size();
    view.total_bytes = steps.a->ledger().total_bytes;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const ClosedFormCheck* check = steps[i].closed_form();
        if (check) view.closed_forms[i] = {to_sentence(*check), check->equal()};
    }
    const std::vector<std::string> words = search_words(request.filter);
    std::erase_if(
        rows, [&](const LedgerViewRow& row) { return !row.is_in_span || !matches(row, words); });
    if (const auto& span = request.spans[0]) {
        view.span_text =
            fmt::format("Only what is saved in the selected range, {} to {}",
                        format_duration(span->start_ns), format_duration(span->end_ns));
    }
    if (view.has_other) {
        view.other_total_bytes = steps.b->ledger().total_bytes;
        if (!rows.empty()) describe_difference(view, rows, rows.size() < view.row_count_total);
    }
    if (request.only_differences) {
        std::erase_if(rows, [](const auto& row) { return row.presence == Presence::kSame; });
    }
    std::ranges::stable_sort(rows, [&request](const LedgerViewRow& a, const LedgerViewRow& b) {
        const int order = compare_rows(a, b, request.sort_by);
        return request.descending ? order > 0 : order < 0;
    });
    view.rows = std::move(rows);
    add_totals(view, request);
    group_rows(view, request);
    return view;
}

const TableColumn<LedgerViewRow>& table_column(LedgerColumn column) {
    using Row = LedgerViewRow;
    static const std::array<TableColumn<Row>, kNumLedgerColumns + 1> kColumns{{
        {"tensor", "Tensor", Unit::kText, "", &Row::tensor},
        {"scope", "Module", Unit::kText, "", &Row::module_path},
        {"made_by", "Made by", Unit::kText, "The op that allocated the tensor", &Row::made_by},
        {"shape", "Shape", Unit::kText, "", &Row::shape},
        {"dtype", "Type", Unit::kText, "", &Row::dtype},
        {"role", "Category", Unit::kText, "",
         [](const Row& row) -> Cell { return name_of(row.category); },
         [](const Row& row) { return std::string(label_of(row.category)); }},
        {"size_bytes", "Bytes", Unit::kBytes, "", &Row::size_bytes, &Row::size_text},
        {"share", "Share", Unit::kShare, "", &Row::share, &Row::share_text},
        {"lifetime_ns", "Lifetime", Unit::kNanoseconds, "From its saving until autograd lets go",
         [](const Row& row) { return row.lifetime_ns >= 0 ? Cell(row.lifetime_ns) : Cell(); },
         &Row::lifetime_text},
        {"saved_by", "Saved by", Unit::kText, "The ops that keep it for their backward",
         &Row::saved_by},
        {"closed_form_bytes", "Closed form", Unit::kBytes,
         "Bytes of this tensor by the formula of a middle layer (docs/techniques.md)",
         &Row::closed_form_bytes},
        {"other_size_bytes", "B", Unit::kBytes, "The same tensor in B", &Row::other_bytes,
         &Row::other_text},
        {"difference_bytes", "B - A", Unit::kBytes, "B minus A: green where B needs less",
         &Row::difference_bytes, &Row::difference_text},
        {"op", "Op", Unit::kText, "", &Row::op},
    }};
    return kColumns[static_cast<std::size_t>(column)];
}

bool applies(const LedgerView& view, LedgerColumn column) {
    if (column == LedgerColumn::kClosedForm) return view.has_closed_form;
    const bool of_other = column == LedgerColumn::kOtherSize || column == LedgerColumn::kDifference;
    return !of_other || view.has_other;
}

DataTable ledger_data(const LedgerView& view, std::span<const LedgerColumn> columns) {
    std::vector<TableColumn<LedgerViewRow>> wanted;
    for (std::size_t i = 0; i < (columns.empty() ? kNumLedgerColumns : columns.size()); ++i) {
        const LedgerColumn column = columns.empty() ? static_cast<LedgerColumn>(i) : columns[i];
        if (applies(view, column)) wanted.push_back(table_column(column));
    }
    return data_table(wanted, view.rows);
}

DataTable copied_rows(const LedgerView& view, std::optional<std::size_t> only) {
    using enum LedgerColumn;
    constexpr std::array kCopied{kTensor,   kModulePath, kOp,      kShape,     kDType,
                                 kCategory, kSize,       kSavedBy, kOtherSize, kDifference};
    DataTable table = ledger_data(view, kCopied);
    if (only) table.rows = {table.rows[*only]};
    return table;
}

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
    std::ranges::sort(groups, [&](std::size_t a, std::size_t b) {
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
        if (group.count > 1) group.sums.tensor += fmt::format(" ×{}", format_count(group.count));
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
    for (const LedgerLine& line : lines) largest = std::max(largest, row_of(view, line).size_bytes);
    return largest;
}

// ---- the selected op --------------------------------------------------------------------------

namespace {

LedgerMark mark_of(const LedgerViewRow& row, const LedgerMarkRequest& request) {
    const LedgerRowOps& ops = row.ops[request.in_b ? 1 : 0];
    LedgerMark mark;
    mark.made = is_within(*request.trace, ops.maker, request.op);
    mark.saved = std::ranges::any_of(ops.savers, [&](Id<Op> saver) {
        return is_within(*request.trace, saver, request.op) ||
               is_within(*request.trace, saver, request.forward);
    });
    return mark;
}

}  // namespace

RowsOfOp mark_rows(const LedgerView& view, const LedgerMarkRequest& request) {
    RowsOfOp marks;
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
    const std::string_view name = name_of_call(*request.trace, request.op);
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
