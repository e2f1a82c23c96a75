#include "profiler/trace/file/sqlite.h"

#include <cerrno>
#include <filesystem>
#include <mutex>

namespace profiler::sqlite {

namespace {

/// errno of the call that failed. SQLite forgets it when a COMMIT fails, but its files remember it.
int last_errno(sqlite3* db) {
    if (const int number = sqlite3_system_errno(db); number != 0) return number;
    int number = 0;
    sqlite3_file* log = nullptr;
    sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log != nullptr && log->pMethods != nullptr) {
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
    }
    if (number == 0) sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
    return number;
}

/// The pages of a database lie in one piece. Single pages would lie in the recorded program's heap,
/// between its tensors. The memory of freed tensors could then not serve large tensors again.
void configure() {
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);  // counting bytes takes time, and nobody asks
    constexpr int kPageBytes = 4096;
    constexpr int kPages = 500;  // what SQLite keeps without being told otherwise
    int header_bytes = 0;
    sqlite3_config(SQLITE_CONFIG_PCACHE_HDRSZ, &header_bytes);
    sqlite3_config(SQLITE_CONFIG_PAGECACHE, nullptr, kPageBytes + header_bytes, kPages);
}

}  // namespace

Error::Error(sqlite3* db, int code)
    : std::runtime_error(db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code)), code_(code) {
    const bool of_system = primary_code() == SQLITE_IOERR || primary_code() == SQLITE_CANTOPEN;
    if (db != nullptr && of_system) system_errno_ = last_errno(db);
}

bool Error::disk_full() const {
    if (primary_code() == SQLITE_FULL) return true;
    return primary_code() == SQLITE_IOERR &&
           (system_errno_ == ENOSPC || system_errno_ == EDQUOT || system_errno_ == EFBIG);
}

Database::Database(const std::string& name, int flags) {
    static std::once_flag is_configured;
    std::call_once(is_configured, configure);
    sqlite3* db = nullptr;
    const int code = sqlite3_open_v2(name.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX, nullptr);
    handle_.reset(db);
    if (code != SQLITE_OK) throw Error(db, code);
    sqlite3_extended_result_codes(db, 1);
    // The schema of a file must not be able to run code or write.
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    // References are checked by the reader; tables refer to each other in circles.
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 0, nullptr);
}

void Database::execute(const std::string& sql) {
    const int code = sqlite3_exec(get(), sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) throw Error(get(), code);
}

int64_t Database::integer(const std::string& query) {
    Statement statement(*this, query);
    return statement.step() ? sqlite3_column_int64(statement.get(), 0) : 0;
}

std::string Database::text(const std::string& query) {
    Statement statement(*this, query);
    if (!statement.step()) return {};
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
    return text != nullptr ? text : "";
}

Statement::Statement(Database& db, std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(db.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    handle_.reset(statement);
    if (code != SQLITE_OK) throw Error(db.get(), code);
}

void Statement::fail(int code) {
    const Error error(sqlite3_db_handle(handle_.get()), code);
    reset();  // so that it can be used again after a rollback
    throw error;
}

std::string quoted_name(std::string_view name) { return '"' + std::string(name) + '"'; }

std::string file_uri(const std::string& path, std::string_view parameters) {
    std::string uri = "file:";
    for (const char c : std::filesystem::absolute(path).string()) {
        switch (c) {
            case '%':
                uri += "%25";
                break;
            case '?':
                uri += "%3f";
                break;
            case '#':
                uri += "%23";
                break;
            default:
                uri += c;
        }
    }
    return uri.append("?").append(parameters);
}

}  // namespace profiler::sqlite
