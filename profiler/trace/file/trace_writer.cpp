#include "profiler/trace/file/schema.h"
#include "profiler/trace/file/snapshot.h"
#include "profiler/trace/file/sqlite.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/trace/text.h"
#include "profiler/trace/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

namespace profiler {
namespace fs = std::filesystem;
using models::fail;
using models::Result;
using sqlite::Database;
using sqlite::side_file;
using sqlite::Statement;

namespace {

template <typename T>
void bind(sqlite3_stmt* statement, int index, T value) {
    if constexpr (std::is_floating_point_v<T>) {
        sqlite3_bind_double(statement, index, value);  // NaN becomes NULL
    } else if constexpr (std::is_enum_v<T>) {
        sqlite3_bind_int64(statement, index, static_cast<int64_t>(value));
    } else {
        int64_t integer = 0;
        if constexpr (schema::is_id<T>) {
            integer = value.value;
        } else {
            integer = value;
        }
        // "None" is NULL in the file, so that SQL's IS NULL, count() and sums do what they say.
        if (integer == -1) {
            sqlite3_bind_null(statement, index);
        } else {
            sqlite3_bind_int64(statement, index, integer);
        }
    }
}

/// A statement has a cost of its own, which many rows share.
constexpr std::size_t kRowsPerStatement = 32;

template <typename Row>
void put_rows(Statement& statement, const Table<Row>& table, std::size_t first,
              std::size_t num_rows = 1) {
    sqlite3_stmt* const handle = statement.get();
    int index = 1;
    for (std::size_t row = first; row < first + num_rows; ++row) {
        sqlite3_bind_int64(handle, index++, static_cast<int64_t>(row));
        table.for_each_column(
            [&](const auto&, const auto& values) { bind(handle, index++, values[row]); });
    }
    statement.step();
    statement.reset();
}

template <typename T>
uint64_t bits_of(T value) {
    if constexpr (std::is_floating_point_v<T>) {
        return std::bit_cast<uint64_t>(value);
    } else if constexpr (schema::is_id<T>) {
        return static_cast<uint64_t>(value.value);
    } else {
        return static_cast<uint64_t>(value);
    }
}

/// Adds the hashes of the rows [hashes.size(), end), column by column.
template <typename Row>
void hash_rows(const Table<Row>& table, std::size_t end, std::vector<uint64_t>& hashes) {
    constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads the bits
    const std::size_t begin = hashes.size();
    hashes.resize(end);
    table.for_each_column([&](const auto&, const auto& values) {
        for (std::size_t row = begin; row < end; ++row) {
            const uint64_t mixed = (hashes[row] ^ bits_of(values[row])) * kMultiplier;
            hashes[row] = mixed ^ mixed >> 32;
        }
    });
}

}  // namespace

/// Remembers what the database already holds, so that each `put` writes only new and changed rows.
/// It keeps a 64-bit hash of each row for that, which costs one pass over the columns a commit.
class TraceSink {
public:
    explicit TraceSink(Database& db) : db_(db) {}

    void create_schema() {
        db_.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};",
                                schema::kApplicationId, kTraceFormatVersion));
        db_.execute(schema::create_statements());
    }

    /// Writes rows inside the caller's transaction. Once it is committed the caller calls `accept`
    /// with the same trace; otherwise the next `put` writes the rows again.
    void put(const Trace& trace) {
        put_strings(trace.strings);
        std::size_t index = 0;
        Trace::for_each_table(trace, [&](std::string_view name, const auto& table) {
            put_table(name, table, state(index++));
        });
    }

    void accept(const Trace& trace) {
        num_strings_ = trace.strings.size();
        std::size_t index = 0;
        Trace::for_each_table(trace, [&](std::string_view, const auto& table) {
            TableState& accepted = state(index++);
            accepted.row_hashes = std::move(accepted.new_hashes);
            hash_rows(table, table.size(), accepted.row_hashes);
        });
    }

private:
    /// What one table of the database holds, and the statements that add to it.
    struct TableState {
        std::vector<uint64_t> row_hashes;  // of the rows that are committed
        std::vector<uint64_t> new_hashes;  // of the same rows, as the last `put` wrote them
        std::optional<Statement> insert;
        std::optional<Statement> insert_many;
        std::optional<Statement> replace;
    };

    TableState& state(std::size_t index) {
        if (index >= tables_.size()) tables_.resize(index + 1);
        return tables_[index];
    }

    void put_strings(const StringTable& strings) {
        if (!insert_string_) {
            insert_string_.emplace(db_, schema::insert_statement("INSERT", "string", 1));
        }
        sqlite3_stmt* const handle = insert_string_->get();
        for (std::size_t i = num_strings_; i < strings.size(); ++i) {
            const std::string_view text = strings[StringId(i)];
            sqlite3_bind_int64(handle, 1, static_cast<int64_t>(i));
            sqlite3_bind_text64(handle, 2, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
            insert_string_->step();
            insert_string_->reset();
        }
    }

    template <typename Row>
    void put_table(std::string_view name, const Table<Row>& table, TableState& state) {
        if (table.empty()) return;
        constexpr std::size_t kNumColumns = std::tuple_size_v<decltype(Row::columns())>;
        if (!state.insert) {
            state.insert.emplace(db_, schema::insert_statement("INSERT", name, kNumColumns));
            state.replace.emplace(db_, schema::insert_statement("REPLACE", name, kNumColumns));
        }
        const std::size_t num_written = state.row_hashes.size();
        state.new_hashes.clear();
        hash_rows(table, num_written, state.new_hashes);
        for (std::size_t row = 0; row < num_written; ++row) {
            const bool is_changed = state.new_hashes[row] != state.row_hashes[row];
            if (is_changed) put_rows(*state.replace, table, row);
        }
        std::size_t row = num_written;
        if (!state.insert_many && row + kRowsPerStatement <= table.size()) {
            state.insert_many.emplace(
                db_, schema::insert_statement("INSERT", name, kNumColumns, kRowsPerStatement));
        }
        for (; row + kRowsPerStatement <= table.size(); row += kRowsPerStatement) {
            put_rows(*state.insert_many, table, row, kRowsPerStatement);
        }
        for (; row < table.size(); ++row) put_rows(*state.insert, table, row);
    }

    Database& db_;
    std::size_t num_strings_ = 0;
    std::optional<Statement> insert_string_;
    std::vector<TableState> tables_;  // in file order
};

namespace {

constexpr int kReaderTimeoutMs = 2000;  // how long finish() waits for readers of the .partial

/// As cannot_write, for an error of SQLite.
tl::unexpected<models::Error> cannot_store(const fs::path& path, const sqlite::Error& error) {
    if (error.system_error() != 0) return cannot_write(path, error.system_error());
    if (error.disk_full()) return cannot_write(path, ENOSPC);
    return fail("Cannot write {}: {}; check the disk or choose another folder.", path.string(),
                error.what());
}

tl::unexpected<models::Error> held_by_another(const fs::path& partial) {
    return fail(
        "{} is being written by another capture; wait for it to end or choose another name.",
        partial.string());
}

class FileDescriptor {
public:
    FileDescriptor(const fs::path& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC)) {}
    ~FileDescriptor() {
        if (fd_ >= 0) close(fd_);
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    int get() const { return fd_; }

private:
    int fd_;
};

/// Keeps two captures from creating the same .partial at the same moment. Held for milliseconds.
/// Afterwards SQLite's own lock on the .partial shows that it has a writer.
class FolderLock {
public:
    explicit FolderLock(const fs::path& folder) : folder_(folder, O_RDONLY | O_DIRECTORY) {
        // Some network file systems have no such locks. Then the capture goes on without one. To
        // merge the log of a dead capture takes another one seconds.
        for (int attempt = 0; attempt < 1000 && folder_.get() >= 0; ++attempt) {
            if (flock(folder_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

private:
    FileDescriptor folder_;
};

/// `path` is neither a folder nor a device.
Result<void> check_target(const fs::path& path) {
    std::error_code error;
    if (!path.has_filename() || fs::is_directory(path, error)) {
        return fail("Cannot write {}: it is a folder; add a file name that ends in .tscope.",
                    path.string());
    }
    return check_no_device(path);
}

/// The folder of a trace that grows there exists and can be written.
Result<void> check_folder(const fs::path& path) {
    const fs::path folder = folder_of(path);
    std::error_code error;
    if (!fs::exists(folder, error)) {
        return fail("Cannot write {}: the folder {} does not exist; create it first.",
                    path.string(), folder.string());
    }
    if (access(folder.c_str(), W_OK | X_OK) != 0) return cannot_write(path, errno);
    return {};
}

void remove_with_side_files(const fs::path& path) {
    std::error_code ignored;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
        fs::remove(side_file(path, suffix), ignored);
    }
}

/// SQLite would take a log of an older file of this name for the log of the new file.
void remove_older_log(const fs::path& path) {
    std::error_code ignored;
    for (const char* suffix : {"-wal", "-shm", "-journal"})
        fs::remove(side_file(path, suffix), ignored);
}

Result<void> publish(const fs::path& from, const fs::path& to) {
    remove_older_log(to);
    return replace_file(from, to);
}

/// `path` is an empty file.
Database create_database(const fs::path& path) {
    return Database(path.string(), SQLITE_OPEN_READWRITE);
}

/// Merges the log of a dead writer into its file. Returns false when the writer lives, because
/// leaving write-ahead mode needs exclusive access. A log that cannot be merged stays as it is.
bool settle(const fs::path& partial) {
    try {
        Database db(partial.string(), SQLITE_OPEN_READWRITE);
        db.text("PRAGMA journal_mode = DELETE");
    } catch (const sqlite::Error& error) {
        return !error.busy();
    }
    return true;
}

/// Renames the `.partial` of a dead writer to the first free `.partial.N`. Merges its log first, so
/// that it is one file; a log that cannot be merged is renamed with it.
Result<void> set_aside(const fs::path& partial) {
    if (!settle(partial)) return held_by_another(partial);
    fs::path aside;
    for (int n = 1; aside.empty() || fs::exists(aside); ++n) {
        aside = fmt::format("{}.{}", partial.string(), n);
    }
    for (const char* suffix : {"-wal", ""}) {
        const fs::path from = side_file(partial, suffix);
        if (*suffix != '\0' && !fs::exists(from)) continue;
        if (rename(from.c_str(), side_file(aside, suffix).c_str()) != 0) {
            return fail("Cannot rename {}, which an earlier capture left: {}.", from.string(),
                        reason_of(errno));
        }
    }
    remove_with_side_files(partial);
    return {};
}

/// Writes to `file`. Messages name `path`.
Result<void> write_new_file(const Trace& trace, const fs::path& file, const fs::path& path) {
    try {
        Database db = create_database(file);
        db.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN");
        TraceSink sink(db);
        sink.create_schema();
        sink.put(trace);
        db.execute("COMMIT");
        return {};
    } catch (const sqlite::Error& error) {
        return cannot_store(path, error);
    }
}

}  // namespace

Result<void> write_trace(const Trace& trace, const fs::path& path) {
    if (auto checked = check_target(path); !checked) return checked;
    const auto target = target_of(path);
    if (!target) return tl::unexpected(target.error());
    auto unfinished = UnfinishedFile::create(*target);
    if (!unfinished) return tl::unexpected(unfinished.error());
    if (auto written = write_new_file(trace, unfinished->name(), path); !written) return written;
    remove_older_log(*target);
    return unfinished->become(*target);
}

struct TraceWriter::Impl {
    Impl(fs::path final_path, Database&& database)
        : path(std::move(final_path)),
          partial(path.string() + ".partial"),
          db(std::move(database)) {}
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();

    fs::path path;
    fs::path partial;
    std::optional<Database> db;  // none after finish
    std::optional<TraceSink> sink;
    struct stat identity = {};  // of the .partial, to detect that it was removed or replaced

    bool is_in_place() const;
    Result<void> commit(const Trace& trace);
    Result<bool> leave_wal();
};

TraceWriter::TraceWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;

Result<TraceWriter> TraceWriter::create(fs::path path) {
    if (auto target = check_target(path); !target) return tl::unexpected(target.error());
    if (auto folder = check_folder(path); !folder) return tl::unexpected(folder.error());
    const fs::path partial = path.string() + ".partial";
    const FolderLock lock(folder_of(path));
    std::error_code ignored;  // creating the file reports what is wrong with the name
    if (fs::is_regular_file(fs::symlink_status(partial, ignored))) {
        if (auto aside = set_aside(partial); !aside) return tl::unexpected(aside.error());
    }
    remove_with_side_files(partial);  // a link too: it is not followed
    if (auto created = create_new(partial); !created) return tl::unexpected(created.error());
    try {
        auto impl = std::make_unique<Impl>(std::move(path), create_database(partial));
        impl->db->text("PRAGMA journal_mode = WAL");
        impl->db->execute("PRAGMA synchronous = NORMAL; BEGIN EXCLUSIVE");
        impl->sink.emplace(*impl->db);
        impl->sink->create_schema();
        impl->db->execute("COMMIT");
        if (stat(partial.c_str(), &impl->identity) != 0) {
            return cannot_write(partial, errno);
        }
        return TraceWriter(std::move(impl));
    } catch (const sqlite::Error& error) {
        if (error.busy()) return held_by_another(partial);
        remove_with_side_files(partial);
        return cannot_store(partial, error);
    }
}

bool TraceWriter::Impl::is_in_place() const {
    struct stat now = {};
    return stat(partial.c_str(), &now) == 0 && now.st_ino == identity.st_ino &&
           now.st_dev == identity.st_dev;
}

Result<void> TraceWriter::Impl::commit(const Trace& trace) {
    if (!db) throw std::logic_error("TraceWriter used after finish");
    if (!is_in_place()) {
        return fail("{} was removed or replaced while the capture wrote it; run the capture again.",
                    partial.string());
    }
    try {
        db->execute("BEGIN");
        sink->put(trace);
        db->execute("COMMIT");
    } catch (const sqlite::Error& error) {
        const auto failure = cannot_store(partial, error);
        if (sqlite3_get_autocommit(db->get()) == 0) {
            sqlite3_exec(db->get(), "ROLLBACK", nullptr, nullptr, nullptr);
        }
        return failure;
    }
    sink->accept(trace);
    return {};
}

Result<void> TraceWriter::commit(const Trace& trace) { return impl_->commit(trace); }

/// Without finish it leaves a file that is whole without a log. A reader that misses the log then
/// knows that the writer was killed.
TraceWriter::Impl::~Impl() {
    if (!db || !is_in_place()) return;
    sink.reset();
    for (const char* sql : {"ROLLBACK", "PRAGMA journal_mode = DELETE"}) {
        sqlite3_exec(db->get(), sql, nullptr, nullptr, nullptr);
    }
}

/// Merges the log into the file. Returns false when a reader keeps the .partial open: SQLite then
/// reports that it is busy, or answers with the mode that the file still has.
Result<bool> TraceWriter::Impl::leave_wal() {
    try {
        sqlite3_busy_timeout(db->get(), kReaderTimeoutMs);
        db->execute("PRAGMA synchronous = FULL");
        return db->text("PRAGMA journal_mode = DELETE") == "delete";
    } catch (const sqlite::Error& error) {
        if (error.busy()) return false;
        return cannot_store(partial, error);
    }
}

Result<void> TraceWriter::finish(Trace& trace, RunState state) {
    const Id<Run> run(0);
    if (trace.runs.empty()) trace.runs.append({});
    const RunState state_before = trace.runs.get<&Run::state>(run);
    trace.runs.set<&Run::state>(run, state);
    if (auto committed = impl_->commit(trace); !committed) {
        trace.runs.set<&Run::state>(run, state_before);
        return committed;
    }
    const Result<bool> merged = impl_->leave_wal();
    if (!merged) return tl::unexpected(merged.error());
    impl_->sink.reset();
    impl_->db.reset();
    // When a reader is in the way, the trace is written to a new file and the reader keeps the old.
    Result<void> finished =
        *merged ? publish(impl_->partial, impl_->path) : write_trace(trace, impl_->path);
    if (!finished) {
        std::string& message = finished.error().message;
        message.pop_back();  // its full stop
        message += fmt::format("; the capture stays in {}.", impl_->partial.string());
        return finished;
    }
    if (!*merged) remove_with_side_files(impl_->partial);
    return finished;
}

void remove_partial(const fs::path& partial) {
    if (settle(partial)) remove_with_side_files(partial);
}

}  // namespace profiler
