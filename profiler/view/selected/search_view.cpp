#include "profiler/view/selected/search_view.h"

#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/text.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/search_words.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

/// Names come from files: long ones end early, and control characters become spaces.
std::string one_line(std::string_view text) {
    constexpr std::size_t kMaxBytes = 1000;
    std::string line(text.substr(0, kMaxBytes));
    if (text.size() > kMaxBytes) {
        while (!line.empty() && (line.back() & 0xC0) == 0x80) line.pop_back();
        if (!line.empty() && (line.back() & 0x80) != 0) line.pop_back();
        line += "…";
    }
    std::ranges::replace_if(line, [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; }, ' ');
    return line;
}

/// The rows of one kind in one source: the name and the amount of each.
struct NamedRows {
    const Trace* trace = nullptr;
    std::span<const StringId> names;
    std::vector<int64_t> amounts;   // empty: unknown
    std::vector<int64_t> times_ns;  // when each happened; empty: at no time
    int64_t shown_from_ns = 0;      // start of the step that the ledger lists

    bool is_shown(std::size_t row) const {
        return times_ns.empty() || times_ns[row] >= shown_from_ns;
    }
};

/// The name of each row as a number; -1 without a name.
std::vector<int32_t> names_of_rows(const NamedRows& rows, SearchKind kind, SearchIndex& index,
                                   std::unordered_map<std::string_view, int32_t>& known) {
    std::vector<int32_t> of_string(rows.trace->strings.size(), -2);  // -2: not seen yet
    std::vector<int32_t> of_row(rows.names.size(), -1);
    for (std::size_t i = 0; i < rows.names.size(); ++i) {
        const StringId id = rows.names[i];
        if (!id.valid() || id.index() >= of_string.size()) continue;
        int32_t& number = of_string[id.index()];
        if (number == -2) {
            const std::string_view text = rows.trace->text(id);
            const auto next = static_cast<int32_t>(index.names.size());
            const bool is_blank = text.find_first_not_of(' ') == text.npos;
            number = is_blank ? -1 : known.emplace(text, next).first->second;
            if (number == next) {
                std::string line = one_line(text);
                std::string lower = to_lower(line);
                index.names.push_back({kind, std::move(line), std::move(lower)});
            }
        }
        of_row[i] = number;
    }
    return of_row;
}

/// Adds the rows of one kind: counts them by name, then puts each where its name's rows lie.
void add_rows(SearchKind kind, std::span<const NamedRows> sources, SearchIndex& index) {
    const std::size_t first_name = index.names.size();
    std::unordered_map<std::string_view, int32_t> known;
    std::array<std::vector<int32_t>, 2> names;
    for (std::size_t s = 0; s < sources.size(); ++s) {
        names[s] = names_of_rows(sources[s], kind, index, known);
        for (std::size_t i = 0; i < names[s].size(); ++i) {
            if (names[s][i] < 0) continue;
            SearchName& name = index.names[static_cast<std::size_t>(names[s][i])];
            ++name.counts[s];
            if (!sources[s].amounts.empty()) name.amounts[s] += sources[s].amounts[i];
        }
    }
    std::size_t end = index.rows.size();
    std::vector<std::size_t> next(index.names.size() - first_name);
    std::vector<bool> has_shown(next.size());
    for (std::size_t n = first_name; n < index.names.size(); ++n) {
        index.names[n].first_place = next[n - first_name] = end;
        end += index.names[n].place_count();
    }
    index.rows.resize(end);
    for (std::size_t s = 0; s < sources.size(); ++s) {
        for (std::size_t i = 0; i < names[s].size(); ++i) {
            if (names[s][i] < 0) continue;
            const auto n = static_cast<std::size_t>(names[s][i]) - first_name;
            SearchName& name = index.names[first_name + n];
            const std::size_t place = next[n]++;
            index.rows[place] = static_cast<int32_t>(i);
            const bool is_of_first = s == 0 || name.counts[0] == 0;
            if (has_shown[n] || !is_of_first || !sources[s].is_shown(i)) continue;
            has_shown[n] = true;
            name.shown_place = place - name.first_place;
        }
    }
}

std::vector<int64_t> durations(std::span<const int64_t> starts_ns,
                               std::span<const int64_t> ends_ns) {
    std::vector<int64_t> durations_ns(starts_ns.size());
    for (std::size_t i = 0; i < starts_ns.size(); ++i) {
        durations_ns[i] = std::max<int64_t>(0, ends_ns[i] - starts_ns[i]);
    }
    return durations_ns;
}

/// When a storage was allocated.
int64_t time_of(const Trace& trace, std::size_t storage) {
    const auto block = trace.storages.get<&Storage::allocation>(Id<Storage>(storage));
    return block.valid() ? trace.allocations.get<&Allocation::alloc_ns>(block) : 0;
}

NamedRows tensors_of(const StepIndex& source) {
    const auto sizes = source.trace().storages.column<&Storage::size_bytes>();
    std::vector<int64_t> times_ns;
    for (std::size_t i = 0; i < sizes.size(); ++i) times_ns.push_back(time_of(source.trace(), i));
    return {&source.trace(), source.storage_names(), {sizes.begin(), sizes.end()}, times_ns};
}

/// Ops or kernels.
template <typename Row, auto RowsOf>
NamedRows spans_of(const StepIndex& source) {
    const Table<Row>& rows = source.trace().*RowsOf;
    const auto starts_ns = rows.template column<&Row::start_ns>();
    return {&source.trace(),
            rows.template column<&Row::name>(),
            durations(starts_ns, rows.template column<&Row::end_ns>()),
            {starts_ns.begin(), starts_ns.end()}};
}

/// A module took the time of the calls that no other call made, in it and in the modules in it.
NamedRows modules_of(const StepIndex& source) {
    constexpr int kMostLevels = 64;  // parents of a damaged file may form a cycle
    const Trace& trace = source.trace();
    const auto op_modules = trace.ops.column<&Op::module_path>();
    const auto op_parents = trace.ops.column<&Op::parent>();
    const auto durations_ns =
        durations(trace.ops.column<&Op::start_ns>(), trace.ops.column<&Op::end_ns>());
    const auto parents = trace.module_paths.column<&ModulePath::parent>();
    std::vector<int64_t> own_ns(trace.module_paths.size());
    for (std::size_t i = 0; i < op_modules.size(); ++i) {
        const bool is_known = op_modules[i].valid() && op_modules[i].index() < own_ns.size();
        if (is_known && !op_parents[i].valid()) own_ns[op_modules[i].index()] += durations_ns[i];
    }
    std::vector<int64_t> total_ns(own_ns.size());
    for (std::size_t i = 0; i < own_ns.size(); ++i) {
        Id<ModulePath> module(i);
        for (int level = 0; level < kMostLevels; ++level) {
            if (!module.valid() || module.index() >= total_ns.size()) break;
            total_ns[module.index()] += own_ns[i];
            module = parents[module.index()];
        }
    }
    return {
        &source.trace(), trace.module_paths.column<&ModulePath::path>(), std::move(total_ns), {}};
}

void add_layers(const Steps& steps, SearchIndex& index) {
    std::map<int64_t, std::array<int64_t, 2>> found;  // by layer: whether each source has it
    for (std::size_t s = 0; s < steps.size(); ++s) {
        for (const int64_t layer : steps[s].trace().module_paths.column<&ModulePath::layer>()) {
            const bool is_number = layer >= 0 && layer < std::numeric_limits<int32_t>::max();
            if (is_number) found[layer][s] = 1;
        }
    }
    for (const auto& [layer, counts] : found) {
        const std::string name = fmt::format("layer {}", layer);
        SearchName entry{SearchKind::kLayer, name, name, counts};
        entry.first_place = index.rows.size();
        index.rows.resize(index.rows.size() + entry.place_count(), static_cast<int32_t>(layer));
        index.names.push_back(std::move(entry));
    }
}

/// What finds an allocation in its call stack: its site, and what the user or the compiler called
/// its place.
std::vector<std::string> names_in_stack(const Trace& trace, const CallSites& sites,
                                        Id<Stack> stack) {
    std::vector<std::string> names;
    if (const std::string site = sites.of(stack); site != kOutsideOfPython) names.push_back(site);
    constexpr int kMostLevels = 1000;  // a damaged file may have cycles
    for (int level = 0; level < kMostLevels && stack.valid(); ++level) {
        const auto [parent, frame] = trace.stacks[stack];
        const std::string_view file =
            frame.valid() ? trace.text(trace.frames.get<&Frame::file>(frame)) : std::string_view();
        if (is_mark_file(file)) names.push_back(sites.label_of(frame));
        stack = parent;
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

struct SiteRows {
    std::array<std::vector<int32_t>, 2> storages;  // of each source
    std::array<int64_t, 2> sizes_bytes{};
};

void add_sites(const Steps& steps, SearchIndex& index) {
    std::map<std::string, SiteRows> found;
    std::array<int64_t, 2> shown_from_ns{};
    for (std::size_t s = 0; s < steps.size(); ++s) {
        const Trace& trace = steps[s].trace();
        const CallSites& sites = steps[s].sites();
        shown_from_ns[s] = start_of_ledger_step(trace);
        std::vector<std::optional<std::vector<SiteRows*>>> of_stack(trace.stacks.size());
        for (std::size_t i = 0; i < trace.storages.size(); ++i) {
            const auto [allocation, size_bytes, category] = trace.storages[Id<Storage>(i)];
            if (!allocation.valid()) continue;
            const Id<Stack> stack = trace.allocations.get<&Allocation::stack>(allocation);
            if (!stack.valid()) continue;
            auto& rows = of_stack[stack.index()];
            if (!rows) {
                rows.emplace();
                for (const std::string& name : names_in_stack(trace, sites, stack)) {
                    rows->push_back(&found[name]);
                }
            }
            for (SiteRows* row : *rows) {
                row->storages[s].push_back(static_cast<int32_t>(i));
                row->sizes_bytes[s] += size_bytes;
            }
        }
    }
    for (const auto& [name, rows] : found) {
        const auto& [in_a, in_b] = rows.storages;
        const std::size_t first = in_a.empty() ? 1 : 0;
        const auto& storages = rows.storages[first];
        const auto shown = std::ranges::find_if(storages, [&](int32_t row) {
            const auto storage = static_cast<std::size_t>(row);
            return time_of(steps[first].trace(), storage) >= shown_from_ns[first];
        });
        const auto place = shown == storages.end() ? 0 : shown - storages.begin();
        const std::string line = one_line(name);
        index.names.push_back({.kind = SearchKind::kSite,
                               .name = line,
                               .lower = to_lower(line),
                               .counts = {std::ssize(in_a), std::ssize(in_b)},
                               .amounts = rows.sizes_bytes,
                               .first_place = index.rows.size(),
                               .shown_place = static_cast<std::size_t>(place)});
        index.rows.insert(index.rows.end(), in_a.begin(), in_a.end());
        index.rows.insert(index.rows.end(), in_b.begin(), in_b.end());
    }
}

}  // namespace

SearchPlace SearchIndex::place(const SearchName& name, std::size_t at) const {
    const std::size_t i = name.first_place + at;
    if (at >= name.place_count() || i >= rows.size()) return {};
    return {at < static_cast<std::size_t>(name.counts[0]) ? 0U : 1U, rows[i]};
}

SearchIndex build_search_index(const Steps& steps) {
    SearchIndex index;
    const auto add = [&](SearchKind kind, NamedRows (*rows_of)(const StepIndex&)) {
        std::vector<NamedRows> rows;
        for (const StepIndex& source : steps.all()) {
            rows.push_back(rows_of(source));
            rows.back().shown_from_ns = start_of_ledger_step(source.trace());
        }
        add_rows(kind, rows, index);
    };
    add(SearchKind::kTensor, tensors_of);
    add(SearchKind::kOp, spans_of<Op, &Trace::ops>);
    add(SearchKind::kKernel, spans_of<Kernel, &Trace::kernels>);
    add(SearchKind::kModule, modules_of);
    add_layers(steps, index);
    add_sites(steps, index);
    return index;
}

namespace {

struct Match {
    int score = 0;
    std::size_t name = 0;
};

std::string count_text(const SearchName& name) {
    const auto [a, b] = std::pair(name.counts[0], name.counts[1]);
    if (name.kind == SearchKind::kLayer || name.kind == SearchKind::kModule) {
        return a > 0 && b > 0 ? "A and B" : a > 0 ? "A" : "B";
    }
    if (a == b) return fmt::format("×{} in A and B", format_count(a));
    if (b == 0) return fmt::format("×{} in A", format_count(a));
    if (a == 0) return fmt::format("×{} in B", format_count(b));
    return fmt::format("×{} in A, ×{} in B", format_count(a), format_count(b));
}

/// Names of kernels are templates of many lines.
std::string label_text(const SearchName& name) {
    constexpr std::size_t kLong = 70;
    if (name.kind != SearchKind::kKernel || name.name.size() <= kLong) return name.name;
    return short_name(name.name);
}

std::string amount_text(const SearchName& name) {
    const bool is_bytes = name.kind == SearchKind::kTensor || name.kind == SearchKind::kSite;
    const auto text = [&](int64_t amount) {
        return is_bytes ? format_bytes(amount) : format_duration(amount);
    };
    const auto [a, b] = std::pair(name.amounts[0], name.amounts[1]);
    if (a <= 0 && b <= 0) return "";
    if (name.counts[0] == 0 || name.counts[1] == 0) return text(std::max(a, b));
    const std::string of_a = text(a), of_b = text(b);
    return of_a == of_b ? of_a + " in each" : fmt::format("A {}, B {}", of_a, of_b);
}

SearchHit make_hit(const SearchIndex& index, std::size_t i) {
    const SearchName& name = index.names[i];
    SearchHit hit{i, label_text(name), count_text(name), ""};
    hit.amount = amount_text(name);
    return hit;
}

SearchGroup make_group(const SearchIndex& index, SearchKind kind, std::vector<Match>& matches) {
    const auto is_better = [&](const Match& one, const Match& other) {
        const int64_t amount = index.names[one.name].largest_amount();
        const int64_t other_amount = index.names[other.name].largest_amount();
        return std::tuple(-one.score, -amount, one.name) <
               std::tuple(-other.score, -other_amount, other.name);
    };
    const std::size_t shown = std::min(matches.size(), SearchView::kMostHits);
    std::partial_sort(matches.begin(), matches.begin() + static_cast<std::ptrdiff_t>(shown),
                      matches.end(), is_better);
    SearchGroup group{.kind = kind, .best_score = matches.front().score};
    group.left_out = static_cast<int64_t>(matches.size() - shown);
    for (std::size_t i = 0; i < shown; ++i) group.hits.push_back(make_hit(index, matches[i].name));
    return group;
}

}  // namespace

std::string_view heading_of(SearchKind kind) {
    constexpr std::array<std::string_view, kSearchKindCount> kHeadings{
        "Tensors", "Ops", "Kernels", "Modules", "Layers", "Lines of code"};
    return kHeadings[static_cast<std::size_t>(kind)];
}

std::string_view label_of(SearchKind kind) {
    constexpr std::array<std::string_view, kSearchKindCount> kLabels{
        "tensor", "op", "kernel", "module", "layer", "line of code"};
    return kLabels[static_cast<std::size_t>(kind)];
}

SearchView search(std::shared_ptr<const SearchIndex> index, std::string_view query) {
    SearchView view{std::move(index), std::string(query), {}};
    const std::vector<std::string> words = search_words(query);
    if (words.empty()) return view;
    std::array<std::vector<Match>, kSearchKindCount> matches;
    for (std::size_t i = 0; i < view.index->names.size(); ++i) {
        const SearchName& name = view.index->names[i];
        const int score = search_score(name.lower, words);
        if (score >= 0) matches[static_cast<std::size_t>(name.kind)].push_back({score, i});
    }
    for (std::size_t kind = 0; kind < kSearchKindCount; ++kind) {
        if (matches[kind].empty()) continue;
        view.groups.push_back(
            make_group(*view.index, static_cast<SearchKind>(kind), matches[kind]));
    }
    std::ranges::stable_sort(view.groups, std::ranges::greater{}, &SearchGroup::best_score);
    return view;
}

}  // namespace profiler
