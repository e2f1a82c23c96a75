#include "profiler/protocol/worker_client.h"

#include "profiler/protocol/frame.h"
#include "profiler/protocol/worker_process.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/text.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <utility>

namespace profiler {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTermAfter{2000};
constexpr milliseconds kKillAfter{5000};
// Loading libtorch from a cold, slow disk takes a while.
constexpr milliseconds kGreetingTimeout{60'000};
// From the end of its socket to the end of the worker.
constexpr milliseconds kExitTimeout{2000};

/// A sentence on where the steps are that the worker had committed. Removes a file without any.
std::string saved_in(const std::string& output_path) {
    const std::string partial = output_path + ".partial";
    std::error_code error;
    if (output_path.empty() || !std::filesystem::exists(partial, error)) return {};
    if (!holds_committed_rows(partial)) {
        remove_partial(partial);  // not if another capture, still in its warm-up, holds it open
        return {};
    }
    return fmt::format(" What was recorded before is in {}.", partial);
}

tl::unexpected<ErrorFrame> cancelled(RequestKind kind, const std::string& output_path) {
    const std::string saved = saved_in(output_path);
    const bool lost = saved.empty() && !output_path.empty();
    return tl::unexpected(ErrorFrame{fmt::format("The {} was cancelled{}{}", work_of(kind),
                                                 lost ? "; nothing was saved." : ".", saved),
                                     1, true});
}

}  // namespace

struct WorkerClient::Impl {
    explicit Impl(WorkerProcess&& started)
        : process(std::move(started)),
          socket(process.release_socket()),
          wakeup(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Impl() {
        end();
        if (wakeup >= 0) close(wakeup);
    }
    /// An idle worker ends when its socket closes; one that does not is killed. A second call does
    /// nothing.
    void end() {
        if (std::exchange(end_called, true)) return;
        socket.close();
        if (process.wait(kExitTimeout)) return;
        process.signal(SIGKILL);
        process.wait(kExitTimeout);
    }

    WorkerProcess process;
    FrameSocket socket;
    FrameDecoder decoder;
    WorkerLog log;
    int wakeup;  // an eventfd: cancel() ends the poll
    std::atomic<bool> cancel_requested = false;
    bool greeted = false;
    bool end_called = false;
    int64_t last_id = 0;  // 0: no request was sent

    /// What was done so far to make the worker end a cancelled request.
    enum class CancelEscalation : uint8_t { kNone, kAsked, kTerminated, kKilled };
    CancelEscalation escalation = CancelEscalation::kNone;
    Clock::time_point asked_at;
    Clock::time_point started_at = Clock::now();
    RequestKind kind{};       // of the request that runs
    std::string output_path;  // of it
    milliseconds timeout{0};
    Clock::time_point heard_at = Clock::now();

    void wait_for_something();
    bool is_silent() const { return timeout.count() > 0 && Clock::now() >= heard_at + timeout; }
    void escalate_cancel();
    WorkerState wait_for_state(const WorkerEvents& events);
    std::optional<WorkerState> handle_messages(const WorkerEvents& events);
    std::optional<WorkerState> handle(const Message& message, const WorkerEvents& events);
    WorkerOutcome broken(std::string message);
    WorkerOutcome ended();
};

WorkerClient::WorkerClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WorkerClient::WorkerClient(WorkerClient&&) noexcept = default;
WorkerClient& WorkerClient::operator=(WorkerClient&&) noexcept = default;
WorkerClient::~WorkerClient() = default;

models::Result<WorkerClient> WorkerClient::start() {
    auto program = find_worker();
    if (!program) return tl::unexpected(program.error());
    return start(*program);
}

models::Result<WorkerClient> WorkerClient::start(const std::filesystem::path& program) {
    return start(program, {});
}

models::Result<WorkerClient> WorkerClient::start(const std::filesystem::path& program,
                                                 const std::vector<std::string>& environment) {
    auto process = WorkerProcess::start(program, environment);
    if (!process) return tl::unexpected(process.error());
    return WorkerClient(std::make_unique<Impl>(std::move(*process)));
}

void WorkerClient::cancel() {
    impl_->cancel_requested = true;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(impl_->wakeup, &one, sizeof one);
}

std::string WorkerClient::log() const { return impl_->log.text(); }

void WorkerClient::end() { impl_->end(); }

bool WorkerClient::has_begun() const { return impl_->last_id > 0; }

WorkerOutcome WorkerClient::run(const Request& request, const WorkerEvents& events) {
    WorkerState state = begin(request, events);
    while (std::holds_alternative<WaitsForTurn>(state)) state = resume({}, events);
    return std::get<WorkerOutcome>(state);
}

WorkerState WorkerClient::begin(const Request& request, const WorkerEvents& events) {
    Impl& impl = *impl_;
    if (impl.cancel_requested) return cancelled(request.kind, {});
    if (!is_utf8(request.output_path)) {
        return tl::unexpected(ErrorFrame{
            fmt::format("{} is not UTF-8 text; choose another name.", request.output_path)});
    }
    impl.kind = request.kind;
    impl.output_path = request.output_path;
    // If the worker is gone, wait_for_state() finds the end of the socket.
    impl.socket.send(to_header(request, ++impl.last_id));
    return impl.wait_for_state(events);
}

WorkerState WorkerClient::resume(const TakeTurn& turn, const WorkerEvents& events) {
    if (!impl_->cancel_requested) impl_->socket.send(to_header(turn, impl_->last_id));
    return impl_->wait_for_state(events);
}

WorkerState WorkerClient::Impl::wait_for_state(const WorkerEvents& events) {
    timeout = events.timeout;
    heard_at = Clock::now();
    if (auto state = handle_messages(events)) return *state;  // received with the last state
    for (;;) {
        wait_for_something();
        escalate_cancel();
        const auto received = socket.receive(decoder, false);
        if (received == FrameSocket::Received::kBytes) heard_at = Clock::now();
        if (auto state = handle_messages(events)) return *state;
        if (received == FrameSocket::Received::kEnd) return ended();
        if (!greeted && Clock::now() >= started_at + kGreetingTimeout) {
            return broken(fmt::format(
                "The worker {} does not answer; build again, or correct TEMPOSCOPE_WORKER.",
                process.program().string()));
        }
        if (is_silent()) {
            return broken(fmt::format(
                "The worker has said nothing for {} s and was ended; try again, or a smaller "
                "model.",
                std::chrono::duration_cast<std::chrono::seconds>(timeout).count()));
        }
    }
}

/// Sleeps until there is a frame, a line of the log, a cancel, or a deadline to act on.
void WorkerClient::Impl::wait_for_something() {
    int timeout_ms = greeted ? -1 : 1000;
    if (cancel_requested && escalation == CancelEscalation::kNone) {
        timeout_ms = 0;  // cancelled while the worker waited for its turn
    } else if (escalation == CancelEscalation::kAsked ||
               escalation == CancelEscalation::kTerminated) {
        const auto due =
            asked_at + (escalation == CancelEscalation::kAsked ? kTermAfter : kKillAfter);
        const auto left = std::chrono::duration_cast<milliseconds>(due - Clock::now());
        timeout_ms = static_cast<int>(std::max<int64_t>(left.count() + 1, 0));
    }
    if (timeout.count() > 0) {
        const auto left = std::chrono::ceil<milliseconds>(heard_at + timeout - Clock::now());
        const auto left_ms = static_cast<int>(std::max<int64_t>(left.count(), 0));
        timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
    }
    std::array<pollfd, 3> waiting{{{socket.descriptor(), POLLIN, 0},
                                   {wakeup, POLLIN, 0},
                                   {process.log_descriptor(), POLLIN, 0}}};
    poll(waiting.data(), waiting.size(), timeout_ms);
    if (waiting[1].revents != 0) {
        uint64_t count = 0;
        [[maybe_unused]] const ssize_t bytes = read(wakeup, &count, sizeof count);
    }
    if (waiting[2].revents != 0 && !process.drain_log(log)) process.close_log();
}

/// Asks the worker to cancel; if it does not answer in time, ends it by SIGTERM, then by SIGKILL.
void WorkerClient::Impl::escalate_cancel() {
    if (!cancel_requested) return;
    const auto now = Clock::now();
    if (escalation == CancelEscalation::kNone) {
        socket.send(to_header(Cancel{}, last_id));
        asked_at = now;
        escalation = CancelEscalation::kAsked;
    } else if (escalation == CancelEscalation::kAsked && now >= asked_at + kTermAfter) {
        process.signal(SIGTERM);
        escalation = CancelEscalation::kTerminated;
    } else if (escalation == CancelEscalation::kTerminated && now >= asked_at + kKillAfter) {
        process.signal(SIGKILL);
        escalation = CancelEscalation::kKilled;
    }
}

std::optional<WorkerState> WorkerClient::Impl::handle_messages(const WorkerEvents& events) {
    for (;;) {
        auto frame = decoder.next();
        if (!frame) return broken(frame.error().message);
        if (!*frame) return std::nullopt;
        auto message = from_header((*frame)->header);
        if (!message) return broken(message.error().message);
        if (auto* result = std::get_if<ResultFrame>(&message->message)) {
            result->payload = std::move((*frame)->payload);
        }
        // Messages of an earlier request may still arrive.
        const bool hello = std::holds_alternative<Hello>(message->message);
        if (!hello && message->id != last_id) continue;
        if (auto state = handle(message->message, events)) return state;
    }
}

std::optional<WorkerState> WorkerClient::Impl::handle(const Message& message,
                                                      const WorkerEvents& events) {
    if (const auto* hello = std::get_if<Hello>(&message)) {
        if (hello->protocol != kProtocolVersion || hello->version != build_version()) {
            return broken(fmt::format(
                "{} has version {} (protocol {}) and this program has version {} (protocol {}); "
                "build both again, or correct TEMPOSCOPE_WORKER.",
                process.program().string(), hello->version, hello->protocol, build_version(),
                kProtocolVersion));
        }
        greeted = true;
        return std::nullopt;
    }
    if (!greeted) return broken("The worker did not say its version; build both programs again.");
    if (const auto* progress = std::get_if<Progress>(&message)) {
        if (events.progress) events.progress(*progress);
        return std::nullopt;
    }
    if (const auto* sample = std::get_if<Sample>(&message)) {
        if (events.sample) events.sample(*sample);
        return std::nullopt;
    }
    if (const auto* waits = std::get_if<WaitsForTurn>(&message)) return *waits;
    if (const auto* result = std::get_if<ResultFrame>(&message)) return WorkerOutcome(*result);
    if (const auto* error = std::get_if<ErrorFrame>(&message)) {
        return WorkerOutcome(tl::unexpected(*error));
    }
    return broken("The worker sent a message that only a program sends; build both again.");
}

/// The two programs do not understand each other: ends the worker.
WorkerOutcome WorkerClient::Impl::broken(std::string message) {
    process.signal(SIGKILL);
    socket.close();
    return tl::unexpected(ErrorFrame{std::move(message)});
}

WorkerOutcome WorkerClient::Impl::ended() {
    if (!process.wait(kExitTimeout)) {
        process.signal(SIGKILL);
        process.wait(kExitTimeout);
    }
    if (process.log_descriptor() >= 0) process.drain_log(log);
    socket.close();
    if (cancel_requested) return cancelled(kind, output_path);
    const int exit_code = process.out_of_memory(log) ? 3 : 1;
    return tl::unexpected(ErrorFrame{process.describe_end(log) + saved_in(output_path), exit_code});
}

}  // namespace profiler
