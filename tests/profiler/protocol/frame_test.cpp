#include "profiler/protocol/frame.h"
#include "profiler/protocol/messages.h"

#include <gtest/gtest.h>

#include <random>

namespace profiler {
namespace {

TEST(FrameDecoder, ReturnsWhatWasEncodedHoweverTheStreamIsCut) {
    const std::string payload("\0\1\2binary\xff", 10);
    const std::string bytes =
        encode_frame({{"kind", "a"}}, payload) + encode_frame({{"kind", "b"}});
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
        FrameDecoder decoder;
        std::vector<WireFrame> frames;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            decoder.feed(std::string_view(bytes).substr(at, piece));
            for (;;) {
                auto frame = decoder.next();
                ASSERT_TRUE(frame);
                if (!*frame) break;
                frames.push_back(std::move(**frame));
            }
        }
        ASSERT_EQ(frames.size(), 2u);
        EXPECT_EQ(frames[0].header["kind"], "a");
        EXPECT_EQ(frames[0].payload, payload);
        EXPECT_EQ(frames[1].header["kind"], "b");
        EXPECT_TRUE(decoder.empty());
    }
}

TEST(FrameDecoder, RefusesALengthOverItsLimitBeforeTheBytesArrive) {
    FrameDecoder header_too_long;
    header_too_long.feed(std::string_view("\1\0\0\1\0\0\0\0", 8));  // 16 MiB + 1
    EXPECT_FALSE(header_too_long.next());
    FrameDecoder payload_too_long;
    payload_too_long.feed(std::string_view("\2\0\0\0\1\0\0\x40", 8));  // 1 GiB + 1
    EXPECT_FALSE(payload_too_long.next());
}

TEST(FrameDecoder, RefusesAHeaderThatIsNoJsonObject) {
    for (const std::string_view header : {"", "{", "[1]", "17", "{\"a\":1}}", "\xff\xfe"}) {
        FrameDecoder decoder;
        std::string bytes(8, '\0');
        bytes[0] = static_cast<char>(header.size());
        decoder.feed(bytes);
        decoder.feed(header);
        EXPECT_FALSE(decoder.next()) << header;
    }
}

TEST(FrameDecoder, SurvivesRandomBytes) {
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        std::string bytes = encode_frame(to_header(Progress{"step", round, 3}, 1), "payload");
        for (int flips = 0; flips < 3; ++flips) {
            bytes[random() % bytes.size()] ^= static_cast<char>(1u << random() % 8);
        }
        FrameDecoder decoder;
        decoder.feed(bytes);
        const auto frame = decoder.next();
        if (frame && *frame) (void)from_header((*frame)->header);  // an error or a message
    }
}

TEST(EncodeFrame, ReplacesBytesThatAreNoUtf8) {
    FrameDecoder decoder;
    decoder.feed(encode_frame({{"message", "a\xff"}}));
    const auto frame = decoder.next();
    ASSERT_TRUE(frame && *frame);
    EXPECT_EQ((*frame)->header["message"], "a\uFFFD");
}

template <typename T>
T round_trip(const T& message) {
    const auto read = from_header(to_header(message, 42));
    if (!read) throw std::runtime_error(read.error().message);
    EXPECT_EQ(read->id, 42);
    return std::get<T>(read->message);
}

TEST(Messages, KeepEveryField) {
    const Request request = round_trip(Request{.kind = RequestKind::kSweep,
                                               .workload = {{"model", {{"name", "bert-large"}}}},
                                               .device = "cuda",
                                               .output_path = "out/ä.tscope",
                                               .memory_limit_bytes = int64_t{16} << 30,
                                               .warmup_steps = 2,
                                               .steps = 5,
                                               .num_threads = 4,
                                               .batch_sizes = {1, 2, 64},
                                               .takes_turns = true});
    EXPECT_EQ(request.kind, RequestKind::kSweep);
    EXPECT_EQ(request.workload["model"]["name"], "bert-large");
    EXPECT_EQ(request.device, "cuda");
    EXPECT_EQ(request.output_path, "out/ä.tscope");
    EXPECT_EQ(request.memory_limit_bytes, int64_t{16} << 30);
    EXPECT_EQ(request.warmup_steps, 2);
    EXPECT_EQ(request.steps, 5);
    EXPECT_EQ(request.num_threads, 4);
    EXPECT_EQ(request.batch_sizes, (std::vector<int64_t>{1, 2, 64}));

    EXPECT_TRUE(request.takes_turns);

    const WaitsForTurn waits = round_trip(WaitsForTurn{5, 6});
    EXPECT_EQ(waits.held_bytes, 5);
    EXPECT_EQ(waits.available_bytes, 6);
    const TakeTurn turn = round_trip(TakeTurn{"run", 3});
    EXPECT_EQ(turn.run, "run");
    EXPECT_EQ(turn.recipes, 3);

    const Sample sample = round_trip(Sample{1, 2, 3, 4, "backward"});
    EXPECT_EQ(sample.time_ns, 1);
    EXPECT_EQ(sample.allocated_bytes, 2);
    EXPECT_EQ(sample.peak_bytes, 3);
    EXPECT_EQ(sample.step, 4);
    EXPECT_EQ(sample.phase, "backward");

    const Progress progress = round_trip(Progress{"warm-up", 1, 2});
    EXPECT_EQ(progress.stage, "warm-up");
    EXPECT_EQ(progress.done, 1);
    EXPECT_EQ(progress.total, 2);

    const ErrorFrame error = round_trip(ErrorFrame{"It failed.", 3, true, {"steps"}});
    EXPECT_EQ(error.message, "It failed.");
    EXPECT_EQ(error.exit_code, 3);
    EXPECT_TRUE(error.cancelled);
    EXPECT_EQ(error.fields, std::vector<std::string>{"steps"});
    nlohmann::json without_fields = to_header(ErrorFrame{"It failed."}, 1);
    without_fields.erase("fields");
    EXPECT_TRUE(from_header(without_fields));

    EXPECT_EQ(round_trip(ResultFrame{"p", {{"a", 1}}}).summary["a"], 1);
    EXPECT_EQ(round_trip(Hello{1, "0.1.0"}).version, "0.1.0");
    round_trip(Cancel{});
}

TEST(Messages, RefuseMissingFieldsWrongTypesAndUnknownKinds) {
    using nlohmann::json;
    EXPECT_FALSE(from_header(json::object()));
    EXPECT_FALSE(from_header({{"id", 1}, {"kind", "surprise"}}));
    EXPECT_FALSE(from_header({{"id", "1"}, {"kind", "cancel"}}));
    EXPECT_FALSE(from_header({{"id", 1}, {"kind", "progress"}, {"stage", "x"}}));
    json request = to_header(Request{}, 1);
    request["request"] = "format-disk";
    EXPECT_FALSE(from_header(request));
    request = to_header(Request{}, 1);
    request["batch_sizes"] = "all";
    EXPECT_FALSE(from_header(request));
}

}  // namespace
}  // namespace profiler
