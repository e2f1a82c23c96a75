#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/terminal.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/reports/chart_files.h"
#include "profiler/trace/file/write_file.h"

#include <httplib.h>
#include <semaphore.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace app {
namespace {

// ---- the server --------------------------------------------------------------------------------

constexpr const char* kLoopback = "127.0.0.1";

using Handled = httplib::Server::HandlerResponse;

void refuse(httplib::Response& answer, int status, const char* sentence) {
    answer.status = status;
    answer.set_content(sentence, "text/plain; charset=utf-8");
}

bool is_for(int port, const httplib::Request& request) {
    const std::string host = request.get_header_value("Host");
    return request.get_header_value_count("Host") == 1 &&
           (host == fmt::format("127.0.0.1:{}", port) || host == fmt::format("localhost:{}", port));
}

/// Without SO_REUSEPORT, which the library sets: it would let two servers share a port.
void reuse_address(socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

/// Hands one page to browsers of this machine, over HTTP on 127.0.0.1.
///
/// It answers GET of "/" only. A request must name this address in its Host header: otherwise a
/// web page from elsewhere could make its own host name point to 127.0.0.1 and read the answer
/// (DNS rebinding).
class PageServer {
public:
    explicit PageServer(std::string page) : page_(std::move(page)) {
        sem_init(&cancelled_, 0, 0);
        set_up();
    }
    ~PageServer() { sem_destroy(&cancelled_); }
    PageServer(const PageServer&) = delete;
    PageServer& operator=(const PageServer&) = delete;

    /// `port` 0: one that is free. Errors: the port is taken or not allowed.
    models::Result<void> listen(int port) {
        errno = 0;
        if (port == 0) {
            port_ = server_.bind_to_any_port(kLoopback);
        } else {
            port_ = server_.bind_to_port(kLoopback, port) ? port : -1;
        }
        if (port_ > 0) return {};
        return models::fail("The port {} of 127.0.0.1 cannot be used: choose another one (--port).",
                            port);
    }

    /// "http://127.0.0.1:8080/"
    std::string address() const { return fmt::format("http://{}:{}/", kLoopback, port_); }

    /// Answers until `cancel`.
    void run() {
        std::atomic<bool> ended = false;
        std::thread listener([&] {
            server_.listen_after_bind();
            ended = true;
            sem_post(&cancelled_);
        });
        while (sem_wait(&cancelled_) != 0) {
        }
        // `stop` does nothing before the server runs.
        while (!server_.is_running() && !ended) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        server_.stop();
        listener.join();
    }

    /// Ends `run`, also one that has not begun. A signal handler may call it.
    void cancel() { sem_post(&cancelled_); }

private:
    static constexpr std::size_t kMaxBodyBytes = 1024;   // of a request, which has none
    static constexpr std::size_t kMostConnections = 32;  // at a time; others wait

    void set_up() {
        server_.set_socket_options(reuse_address);
        server_.set_payload_max_length(kMaxBodyBytes);
        server_.set_keep_alive_max_count(1);  // a connection that waits would delay the end
        server_.set_keep_alive_timeout(1);
        server_.set_read_timeout(std::chrono::seconds(5));
        // A connection that says nothing holds its thread for that time.
        server_.new_task_queue = [] { return new httplib::ThreadPool(kMostConnections); };
        server_.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                                     {"X-Frame-Options", "DENY"},
                                     {"Cross-Origin-Resource-Policy", "same-origin"},
                                     {"Cache-Control", "no-store"}});
        server_.set_pre_routing_handler(
            [this](const httplib::Request& request, httplib::Response& answer) {
                return check(request, answer);
            });
        server_.Get("/", [this](const httplib::Request&, httplib::Response& answer) {
            answer.set_content(page_.data(), page_.size(), "text/html; charset=utf-8");
        });
    }

    Handled check(const httplib::Request& request, httplib::Response& answer) const {
        if (!is_for(port_, request)) {
            refuse(answer, 403, "This server answers to 127.0.0.1 and localhost only.\n");
            return Handled::Handled;
        }
        if (request.method != "GET") {
            answer.set_header("Allow", "GET");
            refuse(answer, 405, "This server answers GET only.\n");
            return Handled::Handled;
        }
        return Handled::Unhandled;
    }

    httplib::Server server_;
    std::string page_;
    int port_ = 0;
    sem_t cancelled_;  // a signal handler may post it
};

// ---- the command -------------------------------------------------------------------------------

struct ViewOptions {
    std::vector<std::string> files;
    std::string output;
    std::string device;
    bool serve = false;
    std::optional<int64_t> port;
};

constexpr int64_t kMaxPort = 65535;

models::Result<void> check(const ViewOptions& options) {
    if (options.output.empty() && !options.serve) {
        return models::fail(
            "Say where the page goes: a file (-o page.html), or a browser of this machine "
            "(--serve).");
    }
    if (!options.output.empty() && options.serve) {
        return models::fail("-o writes the page and --serve hands it to a browser: choose one.");
    }
    if (options.port && (*options.port < 1 || *options.port > kMaxPort)) {
        return models::fail("{} is not a port: choose one from 1 to {} (--port).", *options.port,
                            kMaxPort);
    }
    const std::string extension = std::filesystem::path(options.output).extension().string();
    if (!extension.empty() && extension != ".html" && extension != ".htm") {  // not /dev/stdout
        return models::fail(
            "-o {} ends in {}, but a page is HTML: choose another name, such as page.html.",
            options.output, extension);
    }
    return {};
}

Outcome write_page(const ViewOptions& options, const std::string& page, Output& output) {
    const auto written = profiler::write_file(options.output, page);
    if (!written) return failed(written.error());
    output.document({{"files", options.files}, {"output", options.output}});
    output.line("wrote " + options.output);
    return ExitCode::kOk;
}

Outcome serve_page(const ViewOptions& options, std::string page, Output& output) {
    PageServer server(std::move(page));
    const auto listens = server.listen(static_cast<int>(options.port.value_or(0)));
    if (!listens) return failed(listens.error());
    const CancelOnInterrupt interrupt(server);
    output.document({{"files", options.files}, {"address", server.address()}});
    output.line("open " + server.address() + " in a browser; Ctrl+C ends");
    const auto written = output.flush();  // now, because the address is wanted while it serves
    if (!written) return failed(written.error());
    server.run();
    return ExitCode::kOk;
}

Outcome run_view(const ViewOptions& options, Output& output) {
    if (const auto ok = check_result_file(options.output, options.files); !ok) {
        return tl::unexpected(ok.error());
    }
    if (const auto checked = check(options); !checked) return wrong_usage(checked.error());
    std::vector<profiler::NamedTrace> traces;
    for (const std::string& file : options.files) {
        auto named = open_trace(file, options.device);
        if (!named) return failed(named.error());
        traces.push_back(std::move(*named));
    }
    auto page = render_page(traces);
    if (!page) return failed(page.error());
    return options.serve ? serve_page(options, std::move(*page), output)
                         : write_page(options, *page, output);
}

}  // namespace

void add_view_command(CommandLine& line) {
    Command& command = line.add_command(
        "view", "Show traces in a browser: memory over time, blocks, saved tensors");
    auto options = std::make_shared<ViewOptions>();
    command.add({.names = "FILE",
                 .help = "trace or PyTorch memory snapshot; two for a comparison",
                 .is_required = true,
                 .max_values = 2},
                &options->files);
    command.add({.names = "-o,--output",
                 .help = "page to write; it needs no other file and no network",
                 .value_name = "FILE"},
                &options->output);
    command.add({.names = "--serve",
                 .help = "hand the page to browsers of this machine, on 127.0.0.1, until Ctrl+C"},
                &options->serve);
    command.add({.names = "--port",
                 .help = "with --serve: the port; without it, a free one",
                 .value_name = "N",
                 .needs = "--serve"},
                &options->port);
    command.add(device_option(), &options->device);
    command.footer(
        "On a machine without a display, write the page and copy it, or serve it and forward the "
        "port:\n"
        "  ssh -L 8080:127.0.0.1:8080 machine temposcope view out/tempo.tscope --serve --port 8080"
        "\n\n"
        "Examples:\n"
        "  temposcope view out/original.tscope out/tempo.tscope -o page.html\n"
        "  temposcope view snapshot.pickle --serve\n");
    command.on_run([options](Output& output) { return run_view(*options, output); });
}

}  // namespace app
