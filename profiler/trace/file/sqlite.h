#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

/// The part of SQLite that the trace file needs, as owning handles. Private to profiler/trace:
/// failures are exceptions here and become one sentence at the functions of trace_file.h.
namespace profiler::sqlite {

class Error : public std::runtime_error {
public:
    Error(sqlite3* db, int code);

    int primary_code() const { return code_ & 0xff; }
    bool busy() const { return primary_code() == SQLITE_BUSY || primary_code() == SQLITE_LOCKED; }
    bool disk_full() const;
    bool out_of_memory() const {
        return primary_code() == SQLITE_NOMEM || code_ == SQLITE_IOERR_NOMEM;
    }
    int system_error() const { return system_errno_; }  // errno of the call that failed, or 0

private:
    int code_;
    int system_errno_ = 0;
};

class Database {
public:
    /// `name` is a path or, with SQLITE_OPEN_URI, a URI. Used by one thread at a time.
    Database(const std::string& name, int flags);

    sqlite3* get() const { return handle_.get(); }
    void execute(const std::string& sql);
    int64_t integer(const std::string& query);  // first value of the first row, or 0
    std::string text(const std::string& query);

private:
    struct Close {
        void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
    };
    std::unique_ptr<sqlite3, Close> handle_;
};

class Statement {
public:
    Statement(Database& db, std::string_view sql);

    /// True while there is a row.
    bool step() {
        const int code = sqlite3_step(handle_.get());
        if (code == SQLITE_ROW) return true;
        if (code != SQLITE_DONE) fail(code);
        return false;
    }
    void reset() { sqlite3_reset(handle_.get()); }
    sqlite3_stmt* get() const { return handle_.get(); }

private:
    [[noreturn]] void fail(int code);
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// `name` as an SQL identifier: some columns are SQL keywords.
std::string quoted_name(std::string_view name);

/// A file URI for SQLITE_OPEN_URI, with `parameters` as "immutable=1".
std::string file_uri(const std::string& path, std::string_view parameters);

}  // namespace profiler::sqlite
