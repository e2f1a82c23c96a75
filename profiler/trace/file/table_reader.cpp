#include "profiler/trace/file/table_reader.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace profiler {
using sqlite::Snapshot;

namespace {

/// Columns that refer to their own table (a parent) must not form a ring, because code follows
/// them.
template <typename Row>
void check_no_rings(std::string_view name, const Table<Row>& table) {
    table.for_each_column([&]<typename T>(const Column<Row, T>& column, const auto& parents) {
        if constexpr (std::is_same_v<T, Id<Row>>) {
            std::vector<Id<Row>> seen_from(
                parents.size());  // the row from which the walk first reached it
            for (std::size_t row = 0; row < parents.size(); ++row) {
                const Id<Row> start(row);
                Id<Row> id = start;
                while (id.valid() && !seen_from[id.index()].valid()) {
                    seen_from[id.index()] = start;
                    id = parents[id.index()];
                }
                if (id.valid() && seen_from[id.index()] == start) {
                    damaged("table {}, row {}: following the column {} never ends", name, row,
                            column.name);
                }
            }
        }
    });
}

/// What is left to do for one table of a trace.
struct TableTask {
    std::size_t num_cells = 0;                    // reading them is what takes time
    std::function<bool(sqlite::PageFile&)> scan;  // on any thread; false: query
    std::function<void()> query;                  // on the thread of the database
    std::function<void()> check;                  // on any thread, after the rows were read
    bool is_done = false;
    std::exception_ptr error;  // of the scan or the check
};

std::vector<TableTask> tasks_for(Snapshot& file, const RowCounts& counts, Trace& trace,
                                 ReadProgress& progress) {
    std::vector<TableTask> tasks;
    Trace::for_each_table(trace, [&]<typename Row>(std::string_view name, Table<Row>& table) {
        auto reader = std::make_shared<TableReader<Row>>(file, name, counts);
        tasks.push_back({
            .num_cells = reader->num_cells(),
            .scan = [reader, &table, &progress](
                        sqlite::PageFile& pages) { return reader->scan(pages, table, progress); },
            .query = [reader, &table, &progress] { reader->query(table, progress); },
            .check =
                [name, &table] {
                    check_ranges(name, table);
                    check_no_rings(name, table);
                },
        });
    });
    return tasks;
}

/// Takes the next task until none is left. Errors wait for their turn in the order of the tables,
/// so that a file with two faults always names the same one.
void scan_tables(const Snapshot& file, std::span<TableTask* const> tasks,
                 std::atomic<std::size_t>& next) {
    const auto pages = file.open_pages();
    if (pages == nullptr) return;
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
        try {
            tasks[i]->is_done = tasks[i]->scan(*pages);
            if (tasks[i]->is_done) tasks[i]->check();
        } catch (...) {
            tasks[i]->error = std::current_exception();
        }
    }
}

/// Scans the tables side by side, the largest first: the small ones then even out what the threads
/// have to do. Five of a trace's tables have nearly all of its cells, so more threads gain nothing.
void scan_side_by_side(const Snapshot& file, std::vector<TableTask>& tasks) {
    constexpr std::size_t kCellsThatPayForAThread = 500'000;
    constexpr unsigned kMostUseful = 5;
    std::vector<TableTask*> largest_first;
    for (TableTask& task : tasks) largest_first.push_back(&task);
    std::ranges::stable_sort(largest_first, std::greater{}, &TableTask::num_cells);
    std::atomic<std::size_t> next = 0;
    const auto scan = [&] { scan_tables(file, largest_first, next); };
    std::vector<std::future<void>> others;
    const std::size_t num_threads = std::min(kMostUseful, std::thread::hardware_concurrency());
    try {
        for (std::size_t i = 1; i < num_threads; ++i) {
            if (largest_first[i]->num_cells < kCellsThatPayForAThread) break;
            others.push_back(std::async(std::launch::async, scan));
        }
    } catch (const std::system_error&) {
        // No more threads are to be had: these do all.
    }
    scan();
    for (std::future<void>& other : others) other.get();
}

}  // namespace

void read_all_tables(Snapshot& file, const RowCounts& counts, Trace& trace,
                     ReadProgress& progress) {
    std::vector<TableTask> tasks = tasks_for(file, counts, trace, progress);
    scan_side_by_side(file, tasks);
    for (TableTask& task : tasks) {
        if (task.error) std::rethrow_exception(task.error);
        if (task.is_done) continue;
        task.query();
        task.check();
    }
}

}  // namespace profiler
