/// read_trace on damaged files: it answers with one sentence that names the path. It never crashes
/// and never returns a trace with ids that do not exist.
#include "profiler/trace/file/schema.h"
#include "profiler/trace/file/sqlite.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/profiler/trace/random_trace.h"
#include "tests/profiler/trace/temporary_folder.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_equality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

namespace profiler {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DamagedTrace : public testing::Test {
protected:
    void SetUp() override {
        trace_ = tests::make_synthetic_trace({.num_allocations = 300, .num_layers = 2});
        path_ = folder_ / "a.tscope";
        ASSERT_TRUE(write_trace(trace_, path_));
    }

    void execute(const std::string& sql) {
        // Uses the sqlite3 library directly, because our own connections refuse to change the
        // schema.
        sqlite3* db = nullptr;
        ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
        char* message = nullptr;
        EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
        sqlite3_free(message);
        sqlite3_close(db);
    }

    std::string message() const {
        const auto trace = read_trace(path_);
        if (trace) return "no error";
        EXPECT_THAT(trace.error().message, HasSubstr(path_.string()));
        EXPECT_TRUE(trace.error().message.ends_with('.')) << trace.error().message;
        EXPECT_EQ(trace.error().message.find('\n'), std::string::npos);
        return trace.error().message;
    }

    std::string message_after(const std::string& sql) {
        SetUp();
        execute(sql);
        return message();
    }

    std::string bytes() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write_bytes(const std::string& bytes) const {
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    }

    tests::TemporaryFolder folder_;
    fs::path path_;
    Trace trace_;
};

TEST_F(DamagedTrace, MissingFilesAreNamed) {
    path_ = folder_ / "b.tscope";
    EXPECT_THAT(message(), HasSubstr("does not exist"));
    std::ofstream(folder_ / "b.tscope.partial") << "x";
    EXPECT_THAT(message(), HasSubstr("but its capture left"));
    path_ = folder_.path();
    EXPECT_THAT(message(), HasSubstr("is a folder"));
    path_ = "/dev/null";
    EXPECT_THAT(message(), HasSubstr("is not a file"));
}

TEST_F(DamagedTrace, FilesThatAreNoTracesAreNamed) {
    write_bytes("");
    EXPECT_THAT(message(), HasSubstr("is empty"));
    write_bytes("{\"traceEvents\": []}");
    EXPECT_THAT(message(), HasSubstr("it is not an SQLite file"));
    write_bytes(std::string(100'000, 'x'));
    EXPECT_THAT(message(), HasSubstr("it is not an SQLite file"));
    EXPECT_THAT(message_after("PRAGMA application_id = 1"),
                HasSubstr("SQLite file of another program"));
    EXPECT_THAT(message_after("PRAGMA application_id = 1; PRAGMA journal_mode = WAL"),
                HasSubstr("SQLite file of another program"));
}

TEST_F(DamagedTrace, OtherVersionsAreRefused) {
    EXPECT_THAT(message_after("PRAGMA user_version = 4"),
                HasSubstr("its format is version 4 and this Temposcope reads up to version 3; "
                          "update Temposcope"));
    EXPECT_THAT(message_after("PRAGMA user_version = 0"),
                HasSubstr("version 0, which is no longer read"));
}

TEST_F(DamagedTrace, ColumnsThatAreNewerThanTheFileAreEmpty) {
    const auto text = trace_.strings.intern("y = self.dense(x)");
    trace_.frames.append({.function = text, .file = text, .line = 12, .code = text});
    ASSERT_TRUE(write_trace(trace_, path_));
    execute("DROP VIEW v_frame; ALTER TABLE frame DROP COLUMN code; PRAGMA user_version = 1");
    const auto old = read_trace(path_);
    ASSERT_TRUE(old) << old.error().message;
    const Frame frame = old->frames[Id<Frame>(0)];
    EXPECT_EQ(frame.line, 12);
    EXPECT_FALSE(frame.code.valid());
}

TEST_F(DamagedTrace, StepsOfAnOlderFileAreWhole) {
    trace_.steps.append({.kind = StepKind::kBroken});
    ASSERT_TRUE(write_trace(trace_, path_));
    execute("DROP VIEW v_step; ALTER TABLE step DROP COLUMN kind; PRAGMA user_version = 2");
    const auto old = read_trace(path_);
    ASSERT_TRUE(old) << old.error().message;
    for (const Step step : old->steps.rows()) EXPECT_EQ(step.kind, StepKind::kWhole);
}

TEST_F(DamagedTrace, TablesThatAreNewerThanTheFileAreEmpty) {
    trace_.collectives.append({.communicator = trace_.communicators.append({})});
    for (const int version : {1, 2}) {  // version 2 had files before it had these tables
        ASSERT_TRUE(write_trace(trace_, path_));
        execute(
            "DROP VIEW v_collective; DROP VIEW v_communicator; DROP TABLE collective; "
            "DROP TABLE communicator; CREATE VIEW collective AS SELECT 0 AS id; "
            "PRAGMA user_version = " +
            std::to_string(version));
        const auto old = read_trace(path_);
        ASSERT_TRUE(old) << old.error().message;
        EXPECT_TRUE(old->collectives.empty());
        EXPECT_TRUE(old->communicators.empty());
        EXPECT_EQ(old->allocations.size(), trace_.allocations.size());
    }
}

TEST_F(DamagedTrace, MissingTablesAndColumnsAreNamed) {
    EXPECT_THAT(message_after("DROP TABLE op"), HasSubstr("the table op is missing"));
    EXPECT_THAT(message_after("DROP TABLE string"), HasSubstr("the table string is missing"));
    EXPECT_THAT(message_after("DROP VIEW v_op; ALTER TABLE op RENAME COLUMN flop TO flops"),
                HasSubstr("the table op lacks the column flop"));
    EXPECT_THAT(
        message_after(
            "DROP TABLE counter; CREATE VIEW counter AS SELECT 0 AS id, 1 AS name, 1 AS device, 1 "
            "AS time_ns, 1 AS value"),
        HasSubstr("the table counter is missing"));
}

TEST_F(DamagedTrace, ValuesThatCannotBeAreNamedWithTheirPlace) {
    EXPECT_THAT(message_after("UPDATE allocation SET op = 100000 WHERE id = 17"),
                HasSubstr("table allocation, row 17: the column op is 100000"));
    EXPECT_THAT(message_after("UPDATE allocation SET op = -2 WHERE id = 17"), HasSubstr("is -2"));
    EXPECT_THAT(message_after("UPDATE allocation SET op = 4294967296 WHERE id = 17"),
                HasSubstr("is 4294967296"));
    EXPECT_THAT(message_after("UPDATE storage SET role = 11 WHERE id = 3"),
                HasSubstr("table storage, row 3: the column role is 11"));
    EXPECT_THAT(message_after("UPDATE storage SET role = NULL WHERE id = 3"), HasSubstr("is NULL"));
    EXPECT_THAT(
        message_after("UPDATE storage SET size_bytes = 'many' WHERE id = 3"),
        HasSubstr("table storage, row 3: the column size_bytes has a value of the wrong type"));
    EXPECT_THAT(message_after("UPDATE storage SET size_bytes = 1.5 WHERE id = 3"),
                HasSubstr("wrong type"));
    EXPECT_THAT(message_after("UPDATE step SET loss = 'low'"),
                HasSubstr("column loss has a value of the wrong type"));
    EXPECT_THAT(message_after("UPDATE string SET text = x'00' WHERE id = 2"),
                HasSubstr("table string, row 2"));
    EXPECT_THAT(message_after(
                    "UPDATE string SET text = (SELECT text FROM string WHERE id = 1) WHERE id = 2"),
                HasSubstr("the text repeats"));
}

/// Values that would make an analysis overflow, for each kind of column that has a bound.
TEST_F(DamagedTrace, NumbersBeyondAllMeasureAreNamedWithTheirPlace) {
    EXPECT_THAT(message_after("UPDATE allocation SET requested_bytes = 9223372036854775807 "
                              "WHERE id = 17"),
                HasSubstr("table allocation, row 17: the column requested_bytes is "
                          "9223372036854775807, which cannot be"));
    EXPECT_THAT(message_after("UPDATE allocation SET block_bytes = -2 WHERE id = 17"),
                HasSubstr("the column block_bytes is -2"));
    EXPECT_THAT(message_after("UPDATE step SET start_ns = -9223372036854775808"),
                HasSubstr("the column start_ns is -9223372036854775808"));
    EXPECT_THAT(message_after("UPDATE phase SET last_event = 9223372036854775807"),
                HasSubstr("table phase, row 0: the column last_event"));
    EXPECT_THAT(message_after("UPDATE run SET num_layers = -9223372036854775808"),
                HasSubstr("the column num_layers"));
    EXPECT_THAT(message_after("UPDATE allocation SET block_bytes = 9007199254740992"),
                HasSubstr("table allocation: the column block_bytes adds up to"));
    EXPECT_EQ(message_after("UPDATE run SET start_unix_ns = 9223372036854775807, "
                            "seed = 9223372036854775807"),
              "no error")
        << "the wall clock and the seed are used for no arithmetic";
    EXPECT_EQ(message_after("UPDATE allocation SET address = -1"), "no error");
    // Through SQLite too: a column that another tool added keeps the pages from being read.
    EXPECT_THAT(message_after("ALTER TABLE step ADD COLUMN note; "
                              "UPDATE step SET end_ns = 9223372036854775807"),
                HasSubstr("the column end_ns"));
}

TEST_F(DamagedTrace, TextsThatAreNotUtf8AreNamed) {
    EXPECT_THAT(message_after("UPDATE string SET text = CAST(x'41ff42' AS TEXT) WHERE id = 2"),
                HasSubstr("table string, row 2: the text is not UTF-8"));
}

TEST_F(DamagedTrace, RowsMustBeNumberedFromZeroWithoutGaps) {
    EXPECT_THAT(message_after("DELETE FROM allocation WHERE id = 17"), HasSubstr("without gaps"));
    EXPECT_THAT(message_after("UPDATE allocation SET id = -1 WHERE id = 0"),
                HasSubstr("without gaps"));
    EXPECT_THAT(message_after("UPDATE annotation SET id = 5; INSERT INTO annotation "
                              "VALUES(9223372036854775807, 0, 0, 0)"),
                HasSubstr("table annotation has a row with the id 9223372036854775807"));
    EXPECT_THAT(
        message_after(
            "INSERT INTO run SELECT id + 1, source, time_basis, state, workload, model, head, "
            "recipe, "
            "recipe_per_layer, precision, device_name, software, allocator_settings, num_layers, "
            "batch_size, seq_len, seed, num_threads, memory_limit_bytes, rank, world_size, "
            "start_unix_ns, command, folder, environment, "
            "imbalanced_peak_bytes FROM run"),
        HasSubstr("2 runs"));
}

TEST_F(DamagedTrace, ParentsMustNotFormARing) {
    EXPECT_THAT(
        message_after(
            "UPDATE scope SET parent = 2 WHERE id = 0; UPDATE scope SET parent = 0 WHERE id = 2"),
        HasSubstr("following the column parent never ends"));
    EXPECT_THAT(message_after("UPDATE op SET forward = id WHERE id = 4"),
                HasSubstr("table op, row 4: following the column forward never ends"));
}

TEST_F(DamagedTrace, HarmlessChangesByOtherToolsStillOpen) {
    EXPECT_EQ(message_after("VACUUM"), "no error");
    EXPECT_EQ(
        message_after("CREATE TABLE notes(text); CREATE INDEX by_event ON allocation(alloc_event)"),
        "no error");
    EXPECT_EQ(message_after("ALTER TABLE op ADD COLUMN comment TEXT; UPDATE op SET comment = 'x'"),
              "no error");
    EXPECT_EQ(tests::first_difference(trace_, *read_trace(path_)), "");
    EXPECT_EQ(message_after("PRAGMA journal_mode = WAL; UPDATE step SET loss = 2"), "no error");
    EXPECT_EQ(message_after("PRAGMA page_size = 512; VACUUM"), "no error");
    EXPECT_EQ(tests::first_difference(trace_, *read_trace(path_)), "");
    EXPECT_EQ(message_after("PRAGMA page_size = 65536; VACUUM"), "no error");
    EXPECT_EQ(tests::first_difference(trace_, *read_trace(path_)), "");
}

TEST_F(DamagedTrace, TruncatedFilesAreRefusedAtEveryLength) {
    const std::string whole = bytes();
    for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 300) {
        write_bytes(whole.substr(0, size));
        const std::string said = message();
        ASSERT_NE(said, "no error") << size;
        if (size > 0 && (size < 100 || size > 4096)) {
            ASSERT_THAT(said, HasSubstr("truncated")) << size;
        }
    }
}

/// Visits every id: in a trace that was accepted, all of them must exist.
void touch_every_id(const Trace& trace) {
    int64_t sum = 0;
    Trace::for_each_table(trace, [&]<typename Row>(std::string_view, const Table<Row>& table) {
        table.for_each_column([&]<typename T>(const Column<Row, T>&, const auto& values) {
            if constexpr (std::is_same_v<T, StringId>) {
                for (const StringId id : values) sum += static_cast<int64_t>(trace.text(id).size());
            } else if constexpr (schema::is_id<T>) {
                for (const T id : values) ASSERT_LT(id.value, int32_t{1} << 20);
            } else if constexpr (std::is_enum_v<T>) {
                for (const T v : values) sum += static_cast<int64_t>(name_of(v).size());
            }
        });
    });
    ASSERT_GE(sum, 0);
}

TEST_F(DamagedTrace, MutatedFilesAreErrorsOrSoundTraces) {
    const std::string whole = bytes();
    std::mt19937 random(20261121);
    int accepted = 0;
    for (int round = 0; round < 2000; ++round) {
        std::string mutant = whole;
        const int changes = 1 + static_cast<int>(random() % 8);
        for (int i = 0; i < changes; ++i) {
            // Half of the changes hit page headers and cell pointers, which steer the reader.
            std::size_t at = random() % mutant.size();
            if (random() % 2 == 0) at = at / 4096 * 4096 + random() % 24;
            const char values[] = {0,
                                   1,
                                   0x7f,
                                   static_cast<char>(0x80),
                                   static_cast<char>(0xff),
                                   static_cast<char>(mutant[at] ^ (1 << random() % 8))};
            mutant[at] = values[random() % std::size(values)];
        }
        if (random() % 8 == 0) mutant.resize(random() % mutant.size());
        write_bytes(mutant);
        const auto trace = read_trace(path_);
        if (trace) {
            ++accepted;
            touch_every_id(*trace);
        } else {
            ASSERT_FALSE(trace.error().message.empty());
        }
    }
    EXPECT_GT(accepted, 100) << "changed values of sound files should still open";
}

}  // namespace
}  // namespace profiler
