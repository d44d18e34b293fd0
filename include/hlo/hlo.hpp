/* SPDX-License-Identifier: Apache-2.0 */
/* A thin C++17 interface: owners that free objects, spans, ranges, and results that hold either a
 * value or a status with diagnostics. Each function calls the C function of the same name, whose
 * documentation applies. Use get() to call other functions of the C interface.
 *
 *     hlo::result<hlo::module> module = hlo::module::parse_file("in.hlo");
 *     if (!module) return report(module.error());
 *     hlo::result<hlo::report> report = module->optimize();
 */
#ifndef HLO_HLO_HPP
#define HLO_HLO_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/edit.h"
#include "hlo/memory.h"
#include "hlo/pass.h"
#include "hlo/runtime.h"
#include "hlo/text.h"

namespace hlo
{

/* --------------------------------------------------------------------------------------- results */

/* A diagnostic with its own strings. */
struct diagnostic {
    hlo_severity severity;
    hlo_diag_code code;
    std::string message;
    std::string file;
    std::uint32_t line, column;
    std::string text; /* as hlo_diag_print() writes it, clipped to 100 columns */
};

namespace detail
{
inline bool append(void *text, const char *bytes, std::size_t size)
{
    try {
        static_cast<std::string *>(text)->append(bytes, size);
        return true;
    } catch (...) {
        return false;
    }
}
} // namespace detail

/* Returns a writer that appends to `text`, which must outlive it. */
inline hlo_writer string_writer(std::string &text) noexcept
{
    return hlo_writer{detail::append, &text};
}

/* Collects diagnostics. It must not move while its sink is used. */
class diagnostics
{
public:
    diagnostics() : sink_{emit, this} {}
    diagnostics(const diagnostics &) = delete;
    diagnostics &operator=(const diagnostics &) = delete;

    const hlo_diag_sink *sink() const noexcept { return &sink_; }
    std::vector<diagnostic> take() { return std::move(list_); }

private:
    static void emit(void *user, const hlo_diag *diag)
    {
        try { /* no exception may leave a callback; without memory, the diagnostic is dropped */
            diagnostic made{diag->severity, diag->code, diag->message, diag->file ? diag->file : "",
                            diag->line,     diag->column, {}};
            hlo_diag_print(diag, 100, string_writer(made.text));
            static_cast<diagnostics *>(user)->list_.push_back(std::move(made));
        } catch (...) {
        }
    }

    hlo_diag_sink sink_;
    std::vector<diagnostic> list_;
};

/* The failure of a function: its status, which is not HLO_OK, and its diagnostics. */
struct failure {
    hlo_status status;
    std::vector<diagnostic> diagnostics;

    /* Returns the texts of all diagnostics or, if there are none, the name of the status. */
    std::string text() const
    {
        std::string all;
        for (const diagnostic &d : diagnostics) all += d.text;
        return all.empty() ? hlo_status_name(status) : all;
    }
};

/* Thrown by result::value() of a failed function. */
class bad_result : public std::runtime_error
{
public:
    explicit bad_result(const failure &f) : std::runtime_error(f.text()), status_(f.status) {}
    hlo_status status() const noexcept { return status_; }

private:
    hlo_status status_;
};

/* A value or a failure, like std::expected. */
template <typename T> class result
{
public:
    result(T value, std::vector<diagnostic> diagnostics = {})
        : value_(std::move(value)), failure_{HLO_OK, std::move(diagnostics)}
    {
    }
    result(failure f) : failure_(std::move(f)) {}

    bool has_value() const noexcept { return value_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    /* The failure. Its status is HLO_OK if there is a value. */
    const failure &error() const noexcept { return failure_; }
    hlo_status status() const noexcept { return failure_.status; }
    /* The diagnostics of the function: errors, or the warnings and notes of a success. */
    const std::vector<diagnostic> &diagnostics() const noexcept { return failure_.diagnostics; }

    T &value() &
    {
        if (!value_) throw bad_result(failure_);
        return *value_;
    }
    const T &value() const &
    {
        if (!value_) throw bad_result(failure_);
        return *value_;
    }
    T value() &&
    {
        if (!value_) throw bad_result(failure_);
        return std::move(*value_);
    }
    T &operator*() noexcept { return *value_; }
    const T &operator*() const noexcept { return *value_; }
    T *operator->() noexcept { return &*value_; }
    const T *operator->() const noexcept { return &*value_; }

private:
    std::optional<T> value_;
    failure failure_;
};

/* The result of a function without a value. */
template <> class result<void>
{
public:
    result() : failure_{HLO_OK, {}} {}
    result(failure f) : failure_(std::move(f)) {}

    bool has_value() const noexcept { return failure_.status == HLO_OK; }
    explicit operator bool() const noexcept { return has_value(); }
    const failure &error() const noexcept { return failure_; }
    hlo_status status() const noexcept { return failure_.status; }
    const std::vector<diagnostic> &diagnostics() const noexcept { return failure_.diagnostics; }
    void value() const
    {
        if (!has_value()) throw bad_result(failure_);
    }

private:
    failure failure_;
};

namespace detail
{
template <typename T> result<T> wrap(hlo_status status, T value, diagnostics &d)
{
    if (status == HLO_OK) return result<T>(std::move(value), d.take());
    return result<T>(failure{status, d.take()});
}
inline result<void> wrap(hlo_status status, diagnostics &d)
{
    return result<void>(failure{status, d.take()});
}
template <auto Free> struct deleter {
    template <typename T> void operator()(T *object) const noexcept { Free(object); }
};
template <typename T, auto Free> using owner = std::unique_ptr<T, deleter<Free>>;
} // namespace detail

/* ---------------------------------------------------------------------------------------- ranges */

/* A borrowed array, like std::span of C++20. */
template <typename T> class span
{
public:
    constexpr span() noexcept : data_(nullptr), size_(0) {}
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    template <typename C, typename = decltype(std::declval<C &>().data()),
              typename = decltype(std::declval<C &>().size())>
    constexpr span(C &&container) noexcept : data_(container.data()), size_(container.size())
    {
    }

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }

private:
    T *data_;
    std::size_t size_;
};

/* A list of objects that are linked by `Next`. */
template <typename T, const T *(*Next)(const T *)> class list
{
public:
    class iterator
    {
    public:
        using value_type = const T *;
        using difference_type = std::ptrdiff_t;
        using pointer = const value_type *;
        using reference = value_type;
        using iterator_category = std::input_iterator_tag;

        explicit iterator(const T *at = nullptr) noexcept : at_(at) {}
        const T *operator*() const noexcept { return at_; }
        iterator &operator++() noexcept
        {
            at_ = Next(at_);
            return *this;
        }
        iterator operator++(int) noexcept
        {
            iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const iterator &other) const noexcept { return at_ == other.at_; }
        bool operator!=(const iterator &other) const noexcept { return at_ != other.at_; }

    private:
        const T *at_;
    };

    explicit list(const T *first) noexcept : first_(first) {}
    iterator begin() const noexcept { return iterator(first_); }
    iterator end() const noexcept { return iterator(); }

private:
    const T *first_;
};

using computation_list = list<hlo_computation, hlo_computation_next>;
using instruction_list = list<hlo_instruction, hlo_instruction_next>;
using use_list = list<hlo_use, hlo_use_next>;

inline instruction_list instructions(const hlo_computation *computation) noexcept
{
    return instruction_list(hlo_computation_first(computation));
}

inline use_list uses(const hlo_instruction *instruction) noexcept
{
    return use_list(hlo_instruction_first_use(instruction));
}

/* Returns the sizes of the dimensions of an array. */
inline span<const std::int64_t> dims(const hlo_shape *shape) noexcept
{
    return {hlo_shape_dims(shape), hlo_shape_rank(shape)};
}

/* Returns a shape as in HLO text. */
inline std::string to_string(const hlo_shape *shape, bool layout = true)
{
    std::string text(hlo_shape_format(shape, layout, nullptr, 0), '\0');
    hlo_shape_format(shape, layout, text.data(), text.size() + 1);
    return text;
}

/* --------------------------------------------------------------------------------------- objects */

/* The verdicts of a run of passes. */
class report
{
public:
    explicit report(hlo_report *owned) noexcept : owned_(owned) {}

    std::size_t size() const noexcept { return hlo_report_count(get()); }
    const hlo_verdict &operator[](std::size_t i) const noexcept
    {
        return *hlo_report_verdict(get(), i);
    }
    const hlo_report *get() const noexcept { return owned_.get(); }
    hlo_report *release() noexcept { return owned_.release(); }

private:
    detail::owner<hlo_report, hlo_report_free> owned_;
};

/* A module. */
class module
{
public:
    explicit module(hlo_module *owned) noexcept : owned_(owned) {}

    static result<module> parse(std::string_view text, const char *name = "")
    {
        diagnostics d;
        hlo_module *made = nullptr;
        const hlo_status status = hlo_module_parse(text.data(), text.size(), name, d.sink(), &made);
        return detail::wrap(status, module(made), d);
    }
    static result<module> parse_file(const char *path)
    {
        diagnostics d;
        hlo_module *made = nullptr;
        const hlo_status status = hlo_module_parse_file(path, d.sink(), &made);
        return detail::wrap(status, module(made), d);
    }
    static result<module> create(const char *name)
    {
        diagnostics d;
        hlo_module *made = nullptr;
        const hlo_status status = hlo_module_new(name, d.sink(), &made);
        return detail::wrap(status, module(made), d);
    }

    result<module> clone() const
    {
        diagnostics d;
        hlo_module *made = nullptr;
        const hlo_status status = hlo_module_clone(get(), &made);
        return detail::wrap(status, module(made), d);
    }
    result<void> verify() const
    {
        diagnostics d;
        return detail::wrap(hlo_module_verify(get(), nullptr, d.sink()), d);
    }
    /* Optimizes the module in place. `options.sink` is not used. */
    result<report> optimize(hlo_pass_options options = default_pass_options())
    {
        diagnostics d;
        hlo_report *made = nullptr;
        options.sink = d.sink();
        const hlo_status status = hlo_module_optimize(get(), &options, &made);
        return detail::wrap(status, report(made), d);
    }
    /* Prints the module. `options.sink` is not used. */
    result<std::string> to_text(hlo_print_options options = default_print_options()) const
    {
        diagnostics d;
        std::string text;
        options.sink = d.sink();
        const hlo_status status = hlo_module_print(get(), &options, string_writer(text));
        return detail::wrap(status, std::move(text), d);
    }

    static hlo_pass_options default_pass_options() noexcept
    {
        hlo_pass_options options;
        hlo_pass_options_init(&options);
        return options;
    }

    static hlo_print_options default_print_options() noexcept
    {
        hlo_print_options options;
        hlo_print_options_init(&options, HLO_PRINT_LONG);
        return options;
    }

    std::string_view name() const noexcept { return hlo_module_name(get()); }
    const hlo_computation *entry() const noexcept { return hlo_module_entry(get()); }
    computation_list computations() const noexcept
    {
        return computation_list(hlo_module_first_computation(get()));
    }
    hlo_module *get() noexcept { return owned_.get(); }
    const hlo_module *get() const noexcept { return owned_.get(); }
    hlo_module *release() noexcept { return owned_.release(); }

private:
    detail::owner<hlo_module, hlo_module_free> owned_;
};

/* A list of arrays. */
class arrays
{
public:
    explicit arrays(hlo_arrays *owned) noexcept : owned_(owned) {}

    static result<arrays> create()
    {
        diagnostics d;
        hlo_arrays *made = nullptr;
        const hlo_status status = hlo_arrays_new(&made);
        return detail::wrap(status, arrays(made), d);
    }
    static result<arrays> draw(const module &m, std::uint64_t seed)
    {
        diagnostics d;
        hlo_arrays *made = nullptr;
        const hlo_status status = hlo_arrays_draw(m.get(), seed, d.sink(), &made);
        return detail::wrap(status, arrays(made), d);
    }

    /* Appends a copy of an array. `data` has the elements of the array, in row-major order. */
    template <typename T>
    result<void> append(hlo_element_type type, span<const std::int64_t> sizes, span<const T> data)
    {
        diagnostics d;
        std::size_t bytes = (hlo_element_type_bits(type) + 7) / 8;
        for (const std::int64_t size : sizes) bytes *= static_cast<std::size_t>(size);
        if (bytes != data.size() * sizeof(T)) return failure{HLO_INVALID_USAGE, {}};
        return detail::wrap(hlo_arrays_append(get(), type, static_cast<std::uint32_t>(sizes.size()),
                                              sizes.data(), data.data()),
                            d);
    }
    std::size_t size() const noexcept { return hlo_arrays_count(get()); }
    const hlo_array &operator[](std::size_t i) const noexcept { return *hlo_arrays_at(get(), i); }
    /* Returns the elements of an array as objects of type T, which has the size of an element. */
    template <typename T> span<T> data(std::size_t i) const noexcept
    {
        const hlo_array &array = (*this)[i];
        return {static_cast<T *>(array.data), array.size / sizeof(T)};
    }
    hlo_arrays *get() noexcept { return owned_.get(); }
    const hlo_arrays *get() const noexcept { return owned_.get(); }
    hlo_arrays *release() noexcept { return owned_.release(); }

private:
    detail::owner<hlo_arrays, hlo_arrays_free> owned_;
};

/* A module that is prepared for execution. It borrows the module. */
class plan
{
public:
    explicit plan(hlo_plan *owned) noexcept : owned_(owned) {}

    static result<plan> create(const module &m, const hlo_plan_options *options = nullptr)
    {
        diagnostics d;
        hlo_plan *made = nullptr;
        const hlo_status status = hlo_plan_new(m.get(), options, d.sink(), &made);
        return detail::wrap(status, plan(made), d);
    }

    result<arrays> run(const arrays &inputs)
    {
        diagnostics d;
        hlo_arrays *made = nullptr;
        const hlo_status status = hlo_plan_run(get(), inputs.get(), d.sink(), &made);
        return detail::wrap(status, arrays(made), d);
    }
    hlo_plan *get() noexcept { return owned_.get(); }
    const hlo_plan *get() const noexcept { return owned_.get(); }
    hlo_plan *release() noexcept { return owned_.release(); }

private:
    detail::owner<hlo_plan, hlo_plan_free> owned_;
};

} // namespace hlo

#endif
