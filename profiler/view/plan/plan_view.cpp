#include "profiler/view/plan/plan_view.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace profiler {
namespace {

/// What `read` gives of a part that not every row has.
template <typename T, typename Read>
Cell of(const std::optional<T>& part, const Read& read) {
    return part ? Cell(std::invoke(read, *part)) : Cell();
}

using PlanColumns = std::vector<PlanColumn>;

/// Figures that may name the row: of a workload, or of the user's own program.
PlanColumns naming_columns() {
    using enum Unit;
    using Row = const PlanRow&;
    PlanColumns all;
    const auto add = [&](const char* id, const char* title, Unit unit, auto value) {
        all.push_back({{id, title, unit, "", value}, "", false, /*identifies_row=*/true});
    };
    add("model", "model", kText,
        [](Row r) { return r.program ? r.program->step.model : r.workload.model.name; });
    add("head", "head", kText, [](Row r) { return r.program ? Cell() : name_of(r.workload.head); });
    add("recipe", "recipe", kText,
        [](Row r) { return r.program ? known(r.program->recipe) : Cell(r.workload.recipe_name); });
    add("gpu", "GPU", kText, [](Row r) { return r.gpu.id; });
    add("setup", "software", kText, [](Row r) { return r.environment.id; });
    all.back().identifies_row = false;
    add("precision", "precision", kText, [](Row r) {
        return r.program ? known(r.program->step.precision) : Cell(name_of(r.workload.precision));
    });
    add("seq_len", "seq", kCount, [](Row r) {
        return r.program ? known(r.program->step.seq_len) : Cell(r.workload.seq_len);
    });
    add("gradient_accumulation_steps", "micro-batches", kCount,
        [](Row r) { return r.workload.gradient_accumulation_steps; });
    return all;
}

PlanColumns result_columns() {
    using enum Unit;
    using Row = const PlanRow&;
    PlanColumns all;
    const auto add = [&](const char* id, const char* title, Unit unit, auto value) {
        all.push_back({{id, title, unit, "", value}});
    };
    add("status", "status", kText, [](Row r) { return name_of(r.status); });
    add("reason", "reason", kText, &PlanRow::reason);
    add("batch_size", "at batch", kCount, &PlanRow::batch_size);
    add("max_batch_size", "largest batch", kCount, &PlanRow::max_batch_size);
    add("max_batch_limited_by", "largest batch limited by", kText,
        [](Row r) { return r.max_batch_size ? Cell(name_of(r.max_batch_end)) : Cell(); });
    add("best_batch_size", "fastest batch", kCount, &PlanRow::best_batch_size);
    add("usable_bytes", "usable", kBytes,
        [](Row r) { return of(r.memory, &PlanMemory::usable_bytes); });
    add("peak_allocated_bytes", "allocated", kBytes, [](Row r) {
        return of(r.memory, [](auto& m) { return m.contents.peaks.peak_allocated_bytes; });
    });
    add("peak_reserved_bytes", "reserved", kBytes, [](Row r) {
        return of(r.memory, [](auto& m) { return m.contents.peaks.peak_reserved_bytes; });
    });
    add("step_time_ns", "step", kNanoseconds,
        [](Row r) { return of(r.time, [](auto& time) { return whole_ns(time.total_ns()); }); });
    add("step_time_ns_low", "step, least", kNanoseconds, [](Row r) {
        return of(r.time, [&](auto& t) { return whole_ns(r.time_accuracy->low_ns(t.total_ns())); });
    });
    add("step_time_ns_high", "step, most", kNanoseconds, [](Row r) {
        return of(r.time,
                  [&](auto& t) { return whole_ns(r.time_accuracy->high_ns(t.total_ns())); });
    });
    add("times_calibrated", "times calibrated", kYesNo, [](Row r) {
        return of(r.time_accuracy, [](auto& a) { return a.basis == RateBasis::kOwn; });
    });
    add("throughput_sequences_per_s", "seq/s", kRate,
        [](Row r) { return r.time ? Cell(r.sequences_per_s) : Cell(); });
    add("model_tflops", "TFLOPS", kRate,
        [](Row r) { return r.time ? Cell(r.model_tflops) : Cell(); });
    add("best_throughput_sequences_per_s", "best seq/s", kRate,
        [](Row r) { return r.best_batch_size ? Cell(r.best_sequences_per_s) : Cell(); });
    add("best_model_tflops", "best TFLOPS", kRate,
        [](Row r) { return r.best_batch_size ? Cell(r.best_model_tflops) : Cell(); });
    return all;
}

PlanColumns request_columns(const PlanRequest& request) {
    using enum Unit;
    PlanColumns all;
    const auto add = [&](const char* id, const char* title, Unit unit, const Cell& cell) {
        const auto value = [cell](const PlanRow&) { return cell; };
        all.push_back({{id, title, unit, "", value}, "", /*is_of_request=*/true});
    };
    add("gpus", "GPUs", kCount, request.parallel.num_gpus);
    add("zero_stage", "ZeRO", kCount, request.parallel.zero_stage);
    add("budget_bytes", "budget", kBytes, request.budget_bytes);
    add("link_bytes_per_s", "link", kBytesPerSecond, request.bus_bytes_per_s);
    return all;
}

int64_t term_bytes(const PlanMemory& memory, std::string_view name) {
    const auto term = std::ranges::find(memory.terms, name, &MemoryTerm::name);
    return term == memory.terms.end() ? 0 : term->size_bytes;
}

/// What memory and time consist of: columns in groups.
PlanColumns group_columns() {
    PlanColumns all;
    const auto add_bytes = [&](const char* group, const std::string& id, auto bytes) {
        const auto value = [bytes](const PlanRow& r) { return of(r.memory, bytes); };
        all.push_back({{id, id.substr(0, id.rfind('_')), Unit::kBytes, "", value}, group});
    };
    const auto add_ns = [&](std::string_view title, auto ns) {
        const auto value = [ns](const PlanRow& r) {
            return of(r.time, [&](auto& time) { return whole_ns(ns(time)); });
        };
        all.push_back(
            {{fmt::format("{}_ns", title), std::string(title), Unit::kNanoseconds, "", value},
             "time_by_class"});
    };
    for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
        add_bytes("peak_by_class", std::string(kCategoryNames[i]) + "_bytes",
                  [i](auto& m) { return m.contents.by_category[i]; });
    }
    add_bytes("terms", "context_bytes", [](auto& m) { return m.context_bytes; });
    add_bytes("terms", "rounding_bytes", [](auto& m) { return m.contents.rounding_bytes; });
    add_bytes("terms", "cached_bytes", [](auto& m) { return m.contents.cached_bytes; });
    for (const char* id :
         {"nccl_bytes", "ddp_buckets_bytes", "reduce_bucket_bytes", "gathered_parameters_bytes"}) {
        add_bytes("terms", id, [id](auto& m) { return term_bytes(m, id); });
    }
    for (std::size_t i = 0; i < kOpClassNames.size(); ++i) {
        add_ns(kOpClassNames[i], [i](auto& time) { return time.by_class_ns[i]; });
    }
    add_ns("optimizer", [](auto& time) { return time.optimizer_ns; });
    add_ns("all_reduce", [](auto& time) { return time.all_reduce_ns; });
    add_ns("waiting", [](auto& time) { return time.waiting_ns(); });
    std::ranges::sort(all, [](const PlanColumn& a, const PlanColumn& b) {
        return std::tie(a.group, a.id) < std::tie(b.group, b.id);
    });
    return all;
}

PlanColumns all_columns(const PlanRequest& request) {
    PlanColumns all;
    for (PlanColumns part :
         {naming_columns(), result_columns(), request_columns(request), group_columns()}) {
        std::ranges::move(part, std::back_inserter(all));
    }
    return all;
}

using Rows = std::vector<std::size_t>;  // by index

/// The texts of one column in some rows, each once.
std::vector<std::string> distinct_texts(const std::vector<std::string>& column, const Rows& rows) {
    std::vector<std::string> texts;
    for (const std::size_t row : rows) {
        if (std::ranges::find(texts, column[row]) == texts.end()) texts.push_back(column[row]);
    }
    return texts;
}

/// "tempo/flash"; of many texts "all recipes but flash", or the first ones and the number of the
/// others. `title` is the column's title, `all` are the column's texts in all rows.
std::string name_of_texts(const std::string& title, const std::vector<std::string>& all,
                          const std::vector<std::string>& texts) {
    constexpr std::size_t kFew = 3;
    constexpr std::size_t kMost = 6;
    const std::string list = fmt::format("{}", fmt::join(texts, "/"));
    if (texts.size() <= kFew) return list;
    std::vector<std::string> others;
    std::copy_if(all.begin(), all.end(), std::back_inserter(others), [&](const std::string& text) {
        return std::ranges::find(texts, text) == texts.end();
    });
    if (others.empty()) return fmt::format("all {}s", title);
    if (others.size() <= kMost && others.size() < texts.size()) {
        return fmt::format("all {}s but {}", title, fmt::join(others, "/"));
    }
    if (texts.size() <= kMost) return list;
    return fmt::format("{} and {} more {}s", fmt::join(texts.begin(), texts.begin() + kFew, "/"),
                       texts.size() - kFew, title);
}

/// A column that identifies rows: a text per row.
struct NamingColumn {
    std::string title;
    std::vector<std::string> texts;
};

/// The fewest of `columns` that select `rows` out of `all`, as "fp16/pure-fp16, t4"; empty: all.
std::string name_of_rows(const std::vector<NamingColumn>& columns, const Rows& all,
                         const Rows& rows) {
    std::vector<std::vector<std::string>> texts;
    for (const NamingColumn& column : columns) texts.push_back(distinct_texts(column.texts, rows));
    const auto selects = [&](uint32_t chosen, std::size_t row) {
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if ((chosen >> i & 1) == 0) continue;
            const std::string& text = columns[i].texts[row];
            if (std::ranges::find(texts[i], text) == texts[i].end()) return false;
        }
        return true;
    };
    std::optional<uint32_t> best;
    for (uint32_t chosen = 0; chosen < 1U << columns.size(); ++chosen) {
        if (best && std::popcount(chosen) >= std::popcount(*best)) continue;
        const auto count =
            std::ranges::count_if(all, [&](std::size_t row) { return selects(chosen, row); });
        if (static_cast<std::size_t>(count) == rows.size()) best = chosen;
    }
    if (!best) return fmt::format("{} of {} rows", rows.size(), all.size());
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if ((*best >> i & 1) == 0) continue;
        parts.push_back(
            name_of_texts(columns[i].title, distinct_texts(columns[i].texts, all), texts[i]));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// Each sentence once, in the order of first occurrence, with its rows.
template <typename SentencesOf>
std::vector<PlanSentence> group_sentences(const std::vector<NamingColumn>& columns,
                                          const Rows& rows, const SentencesOf& sentences_of) {
    std::vector<std::pair<std::string, Rows>> groups;
    for (const std::size_t row : rows) {
        for (const std::string& sentence : sentences_of(row)) {
            const auto same = std::ranges::find_if(
                groups, [&](const auto& one) { return one.first == sentence; });
            if (same == groups.end()) {
                groups.push_back({sentence, {row}});
            } else {
                same->second.push_back(row);
            }
        }
    }
    std::vector<PlanSentence> sentences;
    for (const auto& [sentence, about] : groups) {
        sentences.push_back({name_of_rows(columns, rows, about), sentence});
    }
    return sentences;
}

void add_sentences(PlanView& view) {
    std::vector<NamingColumn> columns;
    for (std::size_t column = 0; column < view.columns.size(); ++column) {
        if (!view.columns[column].identifies_row) continue;
        columns.push_back({.title = view.columns[column].title, .texts = {}});
        for (const PlanViewRow& row : view.rows) {
            columns.back().texts.push_back(text_of(view.columns[column].unit, row.cells[column]));
        }
    }
    Rows all;
    Rows possible;
    for (std::size_t i = 0; i < view.rows.size(); ++i) {
        all.push_back(i);
        if (view.rows[i].row.status == PlanStatus::kOk) possible.push_back(i);
    }
    view.reasons = group_sentences(columns, all, [&](std::size_t row) {
        const std::string& reason = view.rows[row].row.reason;
        return reason.empty() ? std::vector<std::string>() : std::vector{reason};
    });
    view.assumptions = group_sentences(columns, possible,
                                       [&](std::size_t row) { return view.rows[row].row.notes; });
}

/// The columns of the table, in its order.
constexpr std::array kTableColumns{"model",
                                   "head",
                                   "recipe",
                                   "precision",
                                   "seq_len",
                                   "gradient_accumulation_steps",
                                   "gpu",
                                   "max_batch_size",
                                   "best_batch_size",
                                   "best_throughput_sequences_per_s",
                                   "best_model_tflops",
                                   "batch_size",
                                   "peak_allocated_bytes",
                                   "peak_reserved_bytes",
                                   "step_time_ns",
                                   "throughput_sequences_per_s",
                                   "model_tflops",
                                   "status"};

std::size_t index_of(const PlanView& view, std::string_view id) {
    const auto column = std::ranges::find(view.columns, id, &PlanColumn::id);
    if (column == view.columns.end()) throw std::out_of_range("no plan column " + std::string(id));
    return static_cast<std::size_t>(column - view.columns.begin());
}

std::string table_text(const PlanColumn& column, const Cell& cell) {
    std::string text = text_of(column.unit, cell);
    if (column.id == "status") std::ranges::replace(text, '_', ' ');
    return text;
}

/// Whether the column would only repeat: every row is ok, or every row's figures are at the fastest
/// batch anyway. One micro-batch a step goes without saying.
bool is_needless(const PlanView& view, std::string_view id) {
    const auto all = [&](auto&& holds) { return std::ranges::all_of(view.rows, holds); };
    if (id == "status") {
        return all([](const PlanViewRow& row) { return row.row.status == PlanStatus::kOk; });
    }
    if (id == "gradient_accumulation_steps") {
        const std::size_t index = index_of(view, id);
        return all([&](const PlanViewRow& row) { return row.cells[index] == Cell(int64_t{1}); });
    }
    if (id != "best_throughput_sequences_per_s" && id != "best_model_tflops") return false;
    const std::size_t best = index_of(view, "best_batch_size");
    const std::size_t shown = index_of(view, "batch_size");
    return all([&](const PlanViewRow& row) {
        const bool has_best = row.cells[best].has_value();
        return !has_best || row.cells[best] == row.cells[shown];
    });
}

/// Fills `table`, and `common` with the columns that say the same in every row.
void add_table(PlanView& view) {
    std::vector<std::size_t> shown;
    std::vector<std::string> common;
    for (const char* id : kTableColumns) {
        if (is_needless(view, id)) continue;
        const std::size_t index = index_of(view, id);
        const PlanColumn& column = view.columns[index];
        const auto is_same = [&](const PlanViewRow& row) {
            return row.cells[index] == view.rows.front().cells[index];
        };
        if (column.identifies_row && std::ranges::all_of(view.rows, is_same)) {
            if (view.rows.front().cells[index] == Cell()) continue;
            const std::string text = text_of(column.unit, view.rows.front().cells[index]);
            common.push_back(column.id == "seq_len" ? "sequence length " + text
                             : column.id == "gradient_accumulation_steps"
                                 ? text + " micro-batches a step"
                                 : text);
            continue;
        }
        const bool is_name = column.identifies_row || column.unit == Unit::kText;
        view.table.columns.push_back({column.title, is_name ? Align::kLeft : Align::kRight});
        shown.push_back(index);
    }
    view.common = fmt::format("{}", fmt::join(common, ", "));
    for (const PlanViewRow& row : view.rows) {
        std::vector<std::string>& cells = view.table.rows.emplace_back();
        for (const std::size_t index : shown) {
            cells.push_back(table_text(view.columns[index], row.cells[index]));
        }
    }
}

}  // namespace

std::vector<PlanPart> memory_parts(const PlanRow& row) {
    std::vector<PlanPart> parts;
    if (!row.memory) return parts;
    const PlanMemory& memory = *row.memory;
    const auto add = [&](std::string name, int64_t bytes) {
        if (bytes > 0) parts.push_back({std::move(name), format_bytes(bytes)});
    };
    int64_t outside_bytes = memory.contents.cached_bytes + memory.context_bytes;
    const auto add_terms = [&](bool is_tensor) {
        for (const MemoryTerm& term : memory.terms) {
            if (term.is_tensor != is_tensor) continue;
            add(term.name.substr(0, term.name.rfind("_bytes")), term.size_bytes);
            if (!is_tensor) outside_bytes += term.size_bytes;
        }
    };
    for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
        add(std::string(kCategoryNames[i]), memory.contents.by_category[i]);
    }
    const int64_t allocated_bytes = memory.contents.peaks.peak_allocated_bytes;
    add_terms(/*is_tensor=*/true);
    add("rounding of blocks", memory.contents.rounding_bytes);
    add("= allocated", allocated_bytes);
    add("cached by the allocator", memory.contents.cached_bytes);
    add_terms(/*is_tensor=*/false);
    add("CUDA context", memory.context_bytes);
    add("= of the GPU", allocated_bytes + outside_bytes);
    return parts;
}

std::vector<PlanPart> time_parts(const PlanRow& row) {
    std::vector<PlanPart> parts;
    if (!row.time) return parts;
    const StepTime& time = *row.time;
    const auto add = [&](std::string_view name, double ns) {
        if (whole_ns(ns) > 0) parts.push_back({std::string(name), format_duration(whole_ns(ns))});
    };
    for (std::size_t i = 0; i < kOpClassNames.size(); ++i) {
        add(kOpClassNames[i], time.by_class_ns[i]);
    }
    add("waiting for the host", time.waiting_ns());
    add("optimizer", time.optimizer_ns);
    add("all-reduce not hidden", time.all_reduce_ns);
    return parts;
}

const Cell& PlanView::cell(std::size_t row, std::string_view column_id) const {
    return rows.at(row).cells[index_of(*this, column_id)];
}

PlanView build_plan_view(const Plan& plan, const PlanRequest& request) {
    PlanView view{.environment = request.environment->id,
                  .batch = request.batch_size ? fmt::format("batch {}", *request.batch_size)
                                              : "the largest batch that fits"};
    view.columns = all_columns(request);
    for (const PlanRow& row : plan.rows) {
        std::vector<Cell> cells;
        for (const PlanColumn& column : view.columns) cells.push_back(column.value(row));
        view.rows.push_back({row, std::move(cells)});
    }
    if (view.rows.empty()) return view;
    add_table(view);
    add_sentences(view);
    return view;
}

namespace {

/// The points of the table, by index.
std::set<std::size_t> shown_points(const std::vector<FrontierPoint>& frontier) {
    constexpr std::size_t kShown = 6;
    std::set<std::size_t> shown;
    if (frontier.empty()) return shown;
    for (std::size_t i = 0; i < kShown; ++i) shown.insert(i * (frontier.size() - 1) / (kShown - 1));
    for (std::size_t i = 0; i < frontier.size(); ++i) {
        if (!frontier[i].is_chosen) continue;
        const std::size_t last = std::min(i + 1, frontier.size() - 1);
        for (std::size_t j = i - std::min<std::size_t>(i, 1); j <= last; ++j) shown.insert(j);
    }
    return shown;
}

}  // namespace

const std::vector<TableColumn<FrontierPoint>>& frontier_columns() {
    using Row = FrontierPoint;
    static const std::vector<TableColumn<Row>> kColumns{
        {"recipe", "recipe", Unit::kText, "", &Row::recipe},
        {"batch_size", "batch", Unit::kCount, "", &Row::batch_size},
        {"peak_allocated_bytes", "allocated", Unit::kBytes, "", &Row::peak_allocated_bytes},
        {"step_time_ns", "step", Unit::kNanoseconds, "", &Row::step_time_ns},
        {"throughput_sequences_per_s", "seq/s", Unit::kRate, "", &Row::sequences_per_s},
        {"simulated", "simulated", Unit::kYesNo, "", &Row::is_simulated},
        {"fits", "fits", Unit::kYesNo, "", &Row::fits},
        {"chosen", "chosen", Unit::kYesNo, "", &Row::is_chosen}};
    return kColumns;
}

TextTable frontier_table(const std::vector<FrontierPoint>& frontier) {
    using Row = FrontierPoint;
    const TableColumn<Row> chosen{
        .value = [](const Row& point) { return point.is_chosen ? "chosen" : ""; }};
    const TableColumn<Row> fits{.value = [](const Row& point) {
        return !point.is_simulated ? "estimate" : *point.fits ? "fits" : "does not fit";
    }};
    std::vector<Row> shown;
    for (const std::size_t i : shown_points(frontier)) shown.push_back(frontier[i]);
    const auto figures = pick(frontier_columns(), {"batch_size", "peak_allocated_bytes",
                                                   "step_time_ns", "throughput_sequences_per_s"});
    return text_table(join<Row>({{chosen}, figures, {fits}, pick(frontier_columns(), {"recipe"})}),
                      shown);
}

PlanView build_plan_view(const AutoPlan& plan, const PlanRequest& request) {
    Plan chosen;
    for (const AutoRow& row : plan.rows) chosen.rows.push_back(row.row);
    PlanView view = build_plan_view(chosen, request);
    if (!request.batch_size) view.batch = "the batch that was chosen";
    return view;
}

}  // namespace profiler
