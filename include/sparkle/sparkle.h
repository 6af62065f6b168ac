/* Sparkle: run ONNX models with the speed of the machine that is there. C interface; sparkle.hpp wraps it for C++.
 *
 * Every function that can fail returns a sparkle_status; sparkle_last_error() then holds one sentence that names what, where
 * and what to do, until the next failing call of the same thread. Handles are released by the function named after their type.
 * Functions may be called from any number of threads at once, on the same handles too, except that nothing may still use a
 * handle that is being released.
 *
 * ABI: functions and structures of one major version never change (version 0 may still rename things before 1.0); structures
 * that may grow begin with `size`, which the caller sets to sizeof: today any other size is refused, later versions accept
 * shorter ones. Only names beginning with sparkle_ are exported. */
#ifndef SPARKLE_SPARKLE_H
#define SPARKLE_SPARKLE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SPARKLE_API __attribute__((visibility("default")))
#else
#define SPARKLE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -- status and version --------------------------------------------------------------------------------------------------- */

/* What a call came to; the functions that can fail return it. */
typedef enum sparkle_status {
  SPARKLE_OK = 0,                 /* it did what it says */
  SPARKLE_BAD_USAGE = 1,          /* the call was given something it does not take */
  SPARKLE_FILE_UNREADABLE = 2,    /* a file cannot be opened or read */
  SPARKLE_FILE_UNWRITABLE = 3,    /* a file cannot be written */
  SPARKLE_BAD_FORMAT = 4,         /* a file or text is not in the format it should be */
  SPARKLE_BAD_MODEL = 5,          /* the model contradicts itself or the ONNX specification */
  SPARKLE_BAD_INPUT = 6,          /* an input does not match what the model declares, or shapes do not fit together */
  SPARKLE_NOT_SERVED = 7,         /* no implementation of this operator, form or element type yet */
  SPARKLE_OVER_MEMORY_BUDGET = 8, /* the plan needs more than the given budget */
  SPARKLE_OUT_OF_MEMORY = 9,      /* an allocation failed, or a size exceeds what can be addressed */
  SPARKLE_DEVICE_UNUSABLE = 10,   /* the device cannot be used here */
  SPARKLE_DEVICE_LOST = 11,       /* the device stopped answering */
  SPARKLE_TIMEOUT = 12,           /* the time given to sparkle_device_wait is over */
  SPARKLE_INTERNAL = 13           /* an assumption inside Sparkle did not hold; please report it */
} sparkle_status;

/* The version of the library that runs, "1.2.3". */
SPARKLE_API const char* sparkle_version(void);
/* The sentence of this thread's last failing call; "" before any. Never NULL. Lines behind the first, where there are some, are
 * details of two blanks and a text: of a model that cannot run one for each operator, with its nodes. */
SPARKLE_API const char* sparkle_last_error(void);
/* The status as a word, "bad_model" for SPARKLE_BAD_MODEL. */
SPARKLE_API const char* sparkle_status_name(sparkle_status status);
/* Releases text that a function returned through a char**. NULL is ignored. */
SPARKLE_API void sparkle_string_free(char* text);

/* -- log ------------------------------------------------------------------------------------------------------------------- */

/* How much a note matters. */
typedef enum sparkle_log_level {
  SPARKLE_LOG_INFO = 0,   /* worth knowing */
  SPARKLE_LOG_WARNING = 1 /* something was done in another way than was asked */
} sparkle_log_level;
/* Called with one line without a line end, from any thread. */
typedef void (*sparkle_log_function)(void* user, sparkle_log_level level, const char* message);
/* Where notes go that are neither results nor errors; NULL (the default): nowhere. */
SPARKLE_API void sparkle_set_log(sparkle_log_function function, void* user);

/* -- devices --------------------------------------------------------------------------------------------------------------- */

/* A pool of the caller's. run calls work(context, task, worker) once for each task in [0, tasks), worker in [0, width), and
 * returns when all are done; it may be called from several threads at once. */
typedef struct sparkle_thread_pool {
  void* user;    /* given to run as it is */
  int32_t width; /* how many workers run at once, the calling thread included; 0: no pool, Sparkle makes its own */
  /* calls work for each task, and returns when all are done */
  void (*run)(void* user, int32_t tasks, void (*work)(void* context, int32_t task, int32_t worker), void* context);
} sparkle_thread_pool;

/* Where arenas, packed weights and device buffers live. allocate returns NULL when it has no memory. */
typedef struct sparkle_allocator {
  void* user;                                                    /* given to both as it is */
  void* (*allocate)(void* user, size_t bytes, size_t alignment); /* NULL: the C++ runtime's */
  /* takes back what allocate gave, with the numbers that it was asked with */
  void (*release)(void* user, void* memory, size_t bytes, size_t alignment);
} sparkle_allocator;

/* How a device is opened; all but size may be zero. */
typedef struct sparkle_device_options {
  size_t size;      /* sizeof(sparkle_device_options) */
  const char* name; /* "cpu", "vulkan", "vulkan:1" (as 'sparkle devices' numbers them), "cuda", "reference"; "auto" (also NULL):
                     * the CPU, since a device is opened before it is known for which model; sparkle_device_choose says which is
                     * the fastest */
  int32_t threads;  /* CPU threads of Sparkle's own pool; 0: what affinity and cgroup quota allow */
  int32_t calibrate;           /* 1: measure this machine's rates first (about a second, kept in the user's cache folder) */
  sparkle_thread_pool pool;    /* of the caller; zeros: a pool of Sparkle's own */
  sparkle_allocator allocator; /* of the caller; zeros: the C++ runtime's */
  const char* fallback; /* "allow": the CPU in the place of a device that cannot be used here, which the events of sessions on
                         * it tell; "forbid", "warn" or NULL: SPARKLE_DEVICE_UNUSABLE. Callers built without this field give the
                         * size that the structure had for them. */
} sparkle_device_options;

/* What runs models: a CPU or a GPU that has been opened. */
typedef struct sparkle_device sparkle_device;
/* Opens a device; *device is released by sparkle_device_release. SPARKLE_BAD_USAGE for a name that there is not,
 * SPARKLE_DEVICE_UNUSABLE, with why, for one that cannot be used here. options may be NULL. */
SPARKLE_API sparkle_status sparkle_device_open(const sparkle_device_options* options, sparkle_device** device);
/* The devices here, none of them opened, as JSON: [{"name": "vulkan:0", "device": its own name and driver, "unusable": why, or
 * ""}]; the CPU is the first. */
SPARKLE_API sparkle_status sparkle_device_list(char** json);
/* The machine as one JSON object: memory levels, math units, rates. */
SPARKLE_API sparkle_status sparkle_device_describe(const sparkle_device* device, char** json);
/* Sessions and buffers keep their device alive. NULL is ignored. */
SPARKLE_API void sparkle_device_release(sparkle_device* device);

/* Counts of what a device moved. */
typedef struct sparkle_traffic {
  size_t size;             /* sizeof(sparkle_traffic) */
  uint64_t copies;         /* regions moved between buffers */
  uint64_t host_transfers; /* tensors and parts of buffers moved between the host's memory and the device's */
} sparkle_traffic;
/* What was moved since the device was opened, beside what kernels do: runs on device tensors add nothing to it. */
SPARKLE_API sparkle_status sparkle_device_traffic(const sparkle_device* device, sparkle_traffic* traffic);

/* -- tensors --------------------------------------------------------------------------------------------------------------- */

/* Types of elements. */
typedef enum sparkle_type {
  SPARKLE_F32 = 0,         /* float of 32 bits */
  SPARKLE_F16 = 1,         /* IEEE float of 16 bits */
  SPARKLE_BF16 = 2,        /* the upper 16 bits of a float of 32 */
  SPARKLE_F64 = 3,         /* float of 64 bits */
  SPARKLE_I8 = 4,          /* int8_t */
  SPARKLE_U8 = 5,          /* uint8_t */
  SPARKLE_I16 = 6,         /* int16_t */
  SPARKLE_U16 = 7,         /* uint16_t */
  SPARKLE_I32 = 8,         /* int32_t */
  SPARKLE_U32 = 9,         /* uint32_t */
  SPARKLE_I64 = 10,        /* int64_t */
  SPARKLE_U64 = 11,        /* uint64_t */
  SPARKLE_BOOL = 12,       /* one byte, 0 or 1 */
  SPARKLE_F8E4M3FN = 13,   /* ONNX's float8e4m3fn: no infinities */
  SPARKLE_F8E4M3FNUZ = 14, /* float8e4m3fnuz: no infinities, no negative zero */
  SPARKLE_F8E5M2 = 15,     /* float8e5m2 */
  SPARKLE_F8E5M2FNUZ = 16, /* float8e5m2fnuz: no infinities, no negative zero */
  SPARKLE_F8E8M0 = 17,     /* float8e8m0: powers of two */
  SPARKLE_F4E2M1 =
      18, /* float4e2m1; from here on one byte each, the element in its low bits; the others are ignored, in results 0 */
  SPARKLE_I4 = 19, /* integer of 4 bits */
  SPARKLE_U4 = 20, /* the same, not negative */
  SPARKLE_I2 = 21, /* integer of 2 bits */
  SPARKLE_U2 = 22  /* the same, not negative */
} sparkle_type;
/* Bytes of one element. */
SPARKLE_API size_t sparkle_type_size(sparkle_type type);

/* The most axes that a tensor has. */
#define SPARKLE_MAX_RANK 8

/* Host memory as a dense row-major tensor; it stays the caller's. */
typedef struct sparkle_tensor {
  sparkle_type type;               /* of an element */
  int32_t rank;                    /* how many axes */
  int64_t shape[SPARKLE_MAX_RANK]; /* the size of each, outermost first */
  void* data;                      /* the elements, dense and row-major */
} sparkle_tensor;

/* A tensor in host memory that Sparkle allocated. */
typedef struct sparkle_value sparkle_value;
/* Its type, shape and elements; valid until the value is released. */
SPARKLE_API sparkle_tensor sparkle_value_tensor(const sparkle_value* value);
/* NULL is ignored. */
SPARKLE_API void sparkle_value_release(sparkle_value* value);

/* -- sessions -------------------------------------------------------------------------------------------------------------- */

/* How a model is opened; all but size may be zero. */
typedef struct sparkle_session_options {
  size_t size;              /* sizeof(sparkle_session_options) */
  const char* precision;    /* "fp32" (also NULL) */
  const char* algorithm;    /* force one where it can serve ("gemm", "depthwise", "winograd4" ...); NULL: by cost */
  const char* variant;      /* force a kernel variant by name; NULL: by cost */
  const char* tuning;       /* file of measured choices (sparkle tune), "kept": the one in the cache; NULL: none */
  int64_t memory_budget;    /* most bytes of tensors and weights; 0: unlimited */
  int64_t plan_cache_bytes; /* plans and arenas kept for shapes seen before; 0: 256 MiB */
  double accuracy;          /* most that max |error| / max |output| of a layer may be predicted to reach; 0: 5e-5 */
  const char* nonfinite;    /* "fast" (also NULL): the default algorithms spread infinities, NaN and values near the end of the
                             * range to neighbours; "exact": each output depends on its own window alone, at some speed */
  const char* fusion;       /* of several layers into one step: "inverted" wherever it can serve, "none"; NULL: by cost.
                             * Callers built without this field give the size that the structure had for them. */
  const char* fallback;     /* Of what a device has no fast kernel for, or none at all (the CPU computes such a step between the
                             * others): "forbid": SPARKLE_NOT_SERVED naming the layer; "warn" (also NULL): done, told as a
                             * warning and kept as an event; "allow": the same as a note, and a session whose device is lost or
                             * full goes on with the CPU, once, and says so. Callers built without this field give the size as
                             * before. */
} sparkle_session_options;

/* A model ready to run. */
typedef struct sparkle_session sparkle_session;
/* Opens a model. Refuses with SPARKLE_NOT_SERVED or SPARKLE_BAD_MODEL a model of which some operator or type is not supported
 * or which contradicts itself, all of that named at once; what only the shapes of inputs tell is said by the first call with
 * them. Reads an ONNX file, whose external data files lie in its folder, or a file of 'sparkle compile', which must be of this
 * machine and version and stays mapped: replace it by renaming, never write into it. options may be NULL. */
SPARKLE_API sparkle_status sparkle_session_open(sparkle_device* device, const char* path,
                                                const sparkle_session_options* options, sparkle_session** session);
/* The same from memory, which is not needed afterwards. External data is not read; a compiled model is copied. */
SPARKLE_API sparkle_status sparkle_session_open_memory(sparkle_device* device, const void* model, size_t bytes,
                                                       const sparkle_session_options* options, sparkle_session** session);
/* Goes on with another device, as on the CPU after SPARKLE_DEVICE_LOST or SPARKLE_OUT_OF_MEMORY: nothing moves unless this is
 * called or the session's fallback is "allow". Plans and packed weights of the device before are dropped, and the next run
 * plans and packs anew; runs that have begun end where they began. Errors leave the session where it was. The ONNX file must
 * still be the one the session was opened from: its weights may be read again; of a model given in memory they are kept on
 * devices that can be lost, and otherwise SPARKLE_BAD_USAGE asks for a new session where all input shapes are fixed. A compiled
 * model goes to devices it was compiled for alone, such as the same one opened again. */
SPARKLE_API sparkle_status sparkle_session_move_to(sparkle_session* session, sparkle_device* device);
/* NULL is ignored. */
SPARKLE_API void sparkle_session_release(sparkle_session* session);

/* For which runs a device is chosen; all but size may be zero. */
typedef struct sparkle_choice_options {
  size_t size;                            /* sizeof(sparkle_choice_options) */
  int32_t threads;                        /* of the CPU; 0: what affinity and cgroup quota allow */
  int64_t rows;                           /* items of a run, where the model leaves its first axes open; 0: 1 */
  const char* const* shape_names;         /* inputs of which the model leaves further sizes open; "": the one input */
  const sparkle_tensor* shapes;           /* and their shapes; data is not read */
  size_t shape_count;                     /* of both */
  const sparkle_session_options* session; /* that the sessions will have; NULL: defaults */
} sparkle_choice_options;

/* Which of the devices here runs the model at `path` fastest, transfers included: by prediction where that is clear, by some
 * runs on random values where it is not, and as before where the same was asked before (the user's cache folder keeps it by
 * file, shapes, options, devices, drivers and version). A software device is never preferred to the CPU; where no GPU is here,
 * nothing is opened and it is the CPU; of a compiled file it is the device that it was compiled for. `json` is {"device": a
 * name for sparkle_device_open, "why": a line, "rows": [{"device", "why", "predicted_ms", "transfers_ms", "measured_ms"}]},
 * rows where devices were compared now. SPARKLE_BAD_USAGE where the model leaves sizes open that no shape tells. options may be
 * NULL. */
SPARKLE_API sparkle_status sparkle_device_choose(const char* path, const sparkle_choice_options* options, char** json);

/* Something that was done in another way than a caller may expect. Texts are valid until the session is released. */
typedef struct sparkle_event {
  const char* what;    /* "operator", "device" or "precision" */
  const char* from;    /* where it was to run, or the type that it was to be computed in */
  const char* to;      /* where it runs, or the type that it is computed in */
  const char* reason;  /* "no_kernel", "device_lost", "out_of_memory", "device_unusable", "type_without_unit" ... */
  double cost;         /* predicted seconds that the step takes in each run; 0 for devices */
  const char* layer;   /* the step; "" for devices */
  const char* message; /* one sentence */
} sparkle_event;
/* How many there are so far, each layer's once; 256 are kept, what comes later is logged alone. */
SPARKLE_API size_t sparkle_session_event_count(const sparkle_session* session);
/* Event `index`, from 0 on; SPARKLE_BAD_USAGE where there is none. */
SPARKLE_API sparkle_status sparkle_session_event(const sparkle_session* session, size_t index, sparkle_event* event);

/* Plans the ONNX file `path` for the shapes of `inputs` (data is not read; count 0: the model's own, an open first axis being
 * 1), packs its weights and writes both to `output`, a file that sparkle_session_open maps on this machine. It is written under
 * another name and then renamed. options may be NULL. Steps that the CPU computes for want of a kernel are in the file, unless
 * options->fallback is "forbid"; sessions that open it tell of them as events, or refuse it where they forbid it. */
SPARKLE_API sparkle_status sparkle_compile(sparkle_device* device, const char* path, const sparkle_session_options* options,
                                           const sparkle_tensor* inputs, size_t input_count, const char* output);

/* What sparkle_fix is asked for; all but size may be zero. */
typedef struct sparkle_fix_options {
  size_t size;             /* sizeof(sparkle_fix_options) */
  const char* precision;   /* "fp16", "bf16" or "int8"; NULL: types stay */
  const char* target;      /* a machine by name ("h200", "rtx3090" ...) or a FILE.json that describes one; NULL: the device */
  const char* only;        /* rules separated by commas: fold_constants, fold_batch_normalization, merge_layouts, pad_channels,
                            * or what sparkle_check calls what they mend; NULL: all */
  const char* calibration; /* of int8: "mse" (also NULL), "minmax", "percentile" or "entropy" */
  const char* proof;       /* "best" (also NULL), "reference", "planned" or "none" */
  double max_extra;        /* the most extra arithmetic of a chain of layers, in percent; 0: 25, below 0: none */
  int32_t multiple;        /* of channels; 0: what the target's units want */
  double percentile;       /* of "percentile": the values that are kept, in percent, 50 to 100; 0: 99.99 */
  double min_cosine;       /* to the original's outputs, up to 1; 0: 0.999, for int8 0.99 */
  double min_agreement;    /* of the first class over the samples, in percent; 0: 100, below 0: none is asked for */
  const char* const* keep_wide;   /* layers that keep their types, by the name of the node or of its output */
  size_t keep_wide_count;         /* of them */
  const char* const* shape_names; /* inputs whose sizes the model leaves open, for random samples */
  const sparkle_tensor* shapes;   /* and their shapes; data is not read */
  size_t shape_count;             /* of both */
} sparkle_fix_options;

/* Writes the ONNX file `path` to `output` with exact rewrites and, where asked for, in another precision, and proves that it
 * answers as before (docs/command.md, 'sparkle fix'). `samples`: one tensor per input of each sample, in the model's order, to
 * measure ranges on and to compare answers with; count 0: random values. `json` (may be NULL) is what
 * was done and found, to be released by sparkle_string_free. SPARKLE_NOT_SERVED where the result would be too far from the
 * original: nothing is written then. options may be NULL. */
SPARKLE_API sparkle_status sparkle_fix(sparkle_device* device, const char* path, const char* output,
                                       const sparkle_fix_options* options, const sparkle_tensor* samples, size_t sample_count,
                                       char** json);

/* What sparkle_check is told of the model; all but size may be zero. */
typedef struct sparkle_check_options {
  size_t size;                    /* sizeof(sparkle_check_options) */
  const char* const* shape_names; /* inputs whose sizes the model leaves open */
  const sparkle_tensor* shapes;   /* and their shapes; data is not read */
  size_t shape_count;             /* of both; a first axis that is open and not among them counts as 1 */
  int32_t threads;                /* of "cpu"; 0: what affinity and cgroup quota allow */
  int32_t measure;                /* not 0: the model runs on each target, which must be here, and rows have measured times */
} sparkle_check_options;

/* What keeps a model off the fast path of devices that need not be here: `targets` as `sparkle check --target` takes them,
 * separated by commas ("h200,rdna3", FILE.json; of this machine "cpu", "vulkan:1"). *json: what `sparkle check --json` prints;
 * *html, where html is not NULL: its page. Both are freed by sparkle_string_free. Nothing is run unless `measure` asks for it,
 * and weights are not read unless folding needs their values. options may be NULL. */
SPARKLE_API sparkle_status sparkle_check(const char* path, const char* targets, const sparkle_check_options* options,
                                         char** json, char** html);

/* An input or output as the model declares it. */
typedef struct sparkle_tensor_info {
  const char* name;                         /* valid as long as the session */
  sparkle_type type;                        /* of an element */
  int32_t rank;                             /* -1: the model leaves it open */
  int64_t shape[SPARKLE_MAX_RANK];          /* -1 where the model leaves a size open */
  const char* axis_names[SPARKLE_MAX_RANK]; /* of open sizes; "" where there is none */
} sparkle_tensor_info;
/* How many inputs the model has. */
SPARKLE_API size_t sparkle_session_input_count(const sparkle_session* session);
/* How many outputs it has. */
SPARKLE_API size_t sparkle_session_output_count(const sparkle_session* session);
/* Input `index` in the model's order, from 0 on; SPARKLE_BAD_USAGE where there is none. */
SPARKLE_API sparkle_status sparkle_session_input(const sparkle_session* session, size_t index, sparkle_tensor_info* info);
/* Output `index`, likewise. */
SPARKLE_API sparkle_status sparkle_session_output(const sparkle_session* session, size_t index, sparkle_tensor_info* info);

/* Runs the model: one tensor per input in the model's order; one value per output, to be released by the caller. Inputs are not
 * copied. The first run with new shapes plans and packs weights. On failure no output is set. */
SPARKLE_API sparkle_status sparkle_session_run(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                               sparkle_value** outputs, size_t output_count);
/* The same into memory of the caller: type, rank and shape of each output must be what sparkle_session_output_shapes tells.
 * Where fewer results were found (NonMaxSuppression), the rows after them begin with -1. Outputs may not overlap inputs or each
 * other; bytes of SPARKLE_BOOL inputs are 0 or 1. */
SPARKLE_API sparkle_status sparkle_session_run_into(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                                    const sparkle_tensor* outputs, size_t output_count);

/* The four below plan for the shapes of the inputs; data is read only of inputs that decide shapes, and may be NULL elsewhere.
 */

/* Types and shapes of the outputs, data NULL. Where a number of results depends on values, the largest it can be. */
SPARKLE_API sparkle_status sparkle_session_output_shapes(sparkle_session* session, const sparkle_tensor* inputs,
                                                         size_t input_count, sparkle_tensor* outputs, size_t output_count);
/* Bytes that a run occupies at its peak: tensors and packed weights. */
SPARKLE_API sparkle_status sparkle_session_peak_bytes(sparkle_session* session, const sparkle_tensor* inputs,
                                                      size_t input_count, int64_t* bytes);
/* The plan: what each step does, how, at what predicted cost, and why nothing else. As a table for people, or as JSON. */
SPARKLE_API sparkle_status sparkle_session_explain(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                                   int32_t as_json, char** text);
/* The plan in its text form, one line per tensor, constant and step. */
SPARKLE_API sparkle_status sparkle_session_plan(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                                char** text);

/* Runs a few times, with timestamps and without, and reports as JSON what `sparkle report --json` prints: total and, for each
 * step, measured and predicted milliseconds, what binds, its share of the roof by the rates of sparkle_device_describe. */
SPARKLE_API sparkle_status sparkle_session_report(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                                  char** json);
/* How long sparkle_session_measure runs, and what it checks; all but size may be zero. */
typedef struct sparkle_measure_options {
  size_t size;       /* sizeof(sparkle_measure_options) */
  double seconds;    /* of runs with times of steps and without, about; 0: one */
  int32_t runs;      /* of each kind, instead of seconds; 0: as many as that takes */
  const char* check; /* of outputs against plain loops before and after the runs: "auto" (also NULL: where that takes some
                      * seconds), "always" or "never" */
} sparkle_measure_options;

/* The same from more runs, beside roofs that are probed between them, its outputs checked. Each place may be NULL:
 * *json; *html, a page for browsers that needs no network; *trace, one run as a Chrome trace, which Perfetto opens. What comes
 * back is freed by sparkle_string_free. Outputs that are wrong are an error, SPARKLE_INTERNAL. options may be NULL. */
SPARKLE_API sparkle_status sparkle_session_measure(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                                   const sparkle_measure_options* options, char** json, char** html,
                                                   char** trace);

/* -- expressions ----------------------------------------------------------------------------------------------------------- */

/* Computes an expression of the caller's own, "silu(x) * a + 0.5", element by element with broadcasting (docs/expressions.md
 * has the grammar). names[i] is what the expression calls tensors[i]; a tensor without axes counts as a number, which takes the
 * type of what it meets. Errors in the text begin with "column N:" and end with the text and a caret under that character. The
 * value is to be released by the caller. Calls with the same text, types and shapes share what was compiled. */
SPARKLE_API sparkle_status sparkle_eval(sparkle_device* device, const char* expression, const char* const* names,
                                        const sparkle_tensor* tensors, size_t count, sparkle_value** result);

/* -- memory of the device, asynchronous runs ------------------------------------------------------------------------------- */
/* The calls are made for devices that work on their own. On a CPU the work is complete when sparkle_session_submit returns.
 * Where the CPU computes steps that a GPU has no kernel for (events "operator" of the session), submitting returns when the
 * last of them is computed, and what they read and make moves between host and device. */

/* Memory of a device. */
typedef struct sparkle_buffer sparkle_buffer;
/* New memory with whatever lies there; SPARKLE_OUT_OF_MEMORY where there is none. */
SPARKLE_API sparkle_status sparkle_buffer_allocate(sparkle_device* device, int64_t bytes, sparkle_buffer** buffer);
/* Host memory as a buffer, neither copied nor freed; SPARKLE_DEVICE_UNUSABLE where the device cannot work on host memory. */
SPARKLE_API sparkle_status sparkle_buffer_import(sparkle_device* device, void* memory, int64_t bytes, sparkle_buffer** buffer);
/* Work on it that is under way keeps the memory. NULL is ignored. */
SPARKLE_API void sparkle_buffer_release(sparkle_buffer* buffer);
/* Its size in bytes. */
SPARKLE_API int64_t sparkle_buffer_bytes(const sparkle_buffer* buffer);
/* The host's address of the memory; NULL where the host cannot see it. */
SPARKLE_API void* sparkle_buffer_host(sparkle_buffer* buffer);
/* Copies `bytes` bytes from the host into the buffer, from byte `offset` on; returns when the copy is done. Work submitted
 * before is waited for. */
SPARKLE_API sparkle_status sparkle_buffer_write(sparkle_buffer* buffer, int64_t offset, const void* from, int64_t bytes);
/* The same from the buffer to the host. */
SPARKLE_API sparkle_status sparkle_buffer_read(sparkle_buffer* buffer, int64_t offset, void* to, int64_t bytes);

/* Starts a run on buffers, dense and row-major, without copies. inputs give types and shapes (and data where values decide
 * shapes). The work is complete once sparkle_device_wait has returned for *token; until then the buffers may be released but
 * not written. */
SPARKLE_API sparkle_status sparkle_session_submit(sparkle_session* session, const sparkle_tensor* inputs,
                                                  sparkle_buffer* const* input_buffers, size_t input_count,
                                                  sparkle_buffer* const* output_buffers, size_t output_count, uint64_t* token);
/* A tensor in memory of the device, dense and row-major from the buffer's first byte on. */
typedef struct sparkle_device_tensor {
  sparkle_type type;               /* of an element */
  int32_t rank;                    /* how many axes */
  int64_t shape[SPARKLE_MAX_RANK]; /* the size of each, outermost first */
  sparkle_buffer* buffer;          /* where the elements lie */
  const void* values;              /* of an input that decides shapes: the same values in host memory; else NULL */
} sparkle_device_tensor;

/* Runs on tensors in memory of the device and returns when the results are there. Nothing is copied, and nothing moves between
 * host and device. An output with a buffer must have the type and shape that sparkle_session_output_shapes tells; one whose
 * buffer is NULL gets all three, the buffer to be released by the caller. Outputs may not overlap inputs or each other. */
SPARKLE_API sparkle_status sparkle_session_run_on_device(sparkle_session* session, const sparkle_device_tensor* inputs,
                                                         size_t input_count, sparkle_device_tensor* outputs,
                                                         size_t output_count);
/* The same, returning at once; the work is complete once sparkle_device_wait has returned for *token. */
SPARKLE_API sparkle_status sparkle_session_submit_on_device(sparkle_session* session, const sparkle_device_tensor* inputs,
                                                            size_t input_count, sparkle_device_tensor* outputs,
                                                            size_t output_count, uint64_t* token);
/* 1 when the work is complete. */
SPARKLE_API int32_t sparkle_device_done(sparkle_device* device, uint64_t token);
/* Waits at most so many nanoseconds; 0: for ever. SPARKLE_TIMEOUT, or the error of the work itself. */
SPARKLE_API sparkle_status sparkle_device_wait(sparkle_device* device, uint64_t token, int64_t nanoseconds);

/* -- Pipelines ------------------------------------------------------------------------------------------------------------- */
/* Items through a session in order, several under way at once: while the device computes one, the next is handed to it and the
 * one before is brought back, by threads of the pipeline's own. */

/* A queue of items in front of a session, or of several. */
typedef struct sparkle_pipeline sparkle_pipeline;

/* How many items are under way, and how devices share them; all but size may be zero. */
typedef struct sparkle_pipeline_options {
  size_t size;       /* sizeof(sparkle_pipeline_options) */
  int32_t depth;     /* items that the device has at once; 0: 3 */
  int32_t waiting;   /* items that wait for one of these before sparkle_pipeline_submit waits; 0: four times as many */
  const char* split; /* of sparkle_pipeline_open_shared alone, as all below. "auto" or NULL: devices that are predicted to bring
                        next to nothing, and all but one of those on the CPU's cores, take no items; "always": all take some */
  const char* fallback; /* "warn", NULL or "allow": what a lost device had is run by the others, an event of its session says
                           so; "forbid": it comes back with its error */
  int64_t items;        /* that will come, where that is known: the last do not wait for the slowest device; 0: nobody knows */
} sparkle_pipeline_options;

/* An item's result: the outputs, which are the caller's and released by sparkle_value_release, or what was wrong with this
 * item, `sentence`, and none. Called once for each item, in the order of the items, by a thread of the pipeline's; it may not
 * call the pipeline. */
typedef void (*sparkle_done_function)(void* user, sparkle_status status, const char* sentence, sparkle_value** outputs,
                                      size_t output_count);

/* A pipeline over one session, which stays open as long as the pipeline is. options may be NULL. */
SPARKLE_API sparkle_status sparkle_pipeline_open(sparkle_session* session, const sparkle_pipeline_options* options,
                                                 sparkle_pipeline** pipeline);
/* One queue over several sessions of the same model, each on a device of its own; one may be there several times. Each device
 * takes items as fast as it is, results come in the order of the items. Outputs of different devices differ by rounding errors.
 * Beside GPUs leave a thread of the CPU to feed each of them (sparkle_device_options.threads). */
SPARKLE_API sparkle_status sparkle_pipeline_open_shared(sparkle_session* const* sessions, size_t session_count,
                                                        const sparkle_pipeline_options* options, sparkle_pipeline** pipeline);

/* What a device of a shared pipeline has done. */
typedef struct sparkle_pipeline_share {
  size_t size;      /* sizeof(sparkle_pipeline_share) */
  int32_t used;     /* 0: it takes no items, as sparkle_pipeline_why says, or none has come yet */
  int32_t lost;     /* 1: lost, full or refused by its driver: takes no more */
  uint64_t items;   /* whose results it gave */
  double predicted; /* seconds for an item; 0: nobody knows */
  double seconds;   /* the same as measured of late; 0: not yet */
} sparkle_pipeline_share;
/* What a session of a shared pipeline has done, by its place among those given. */
SPARKLE_API sparkle_status sparkle_pipeline_get_share(sparkle_pipeline* pipeline, size_t session,
                                                      sparkle_pipeline_share* share);
/* Which devices of a shared pipeline work and why, one line, empty before the first item; released by sparkle_string_free. */
SPARKLE_API sparkle_status sparkle_pipeline_why(sparkle_pipeline* pipeline, char** text);
/* Takes an item, and waits while the pipeline is full. The inputs' memory may neither change nor go before `done` is called. */
SPARKLE_API sparkle_status sparkle_pipeline_submit(sparkle_pipeline* pipeline, const sparkle_tensor* inputs, size_t input_count,
                                                   sparkle_done_function done, void* user);
/* The same without waiting: *taken is 0 where the pipeline is full, and `done` is not called. */
SPARKLE_API sparkle_status sparkle_pipeline_try_submit(sparkle_pipeline* pipeline, const sparkle_tensor* inputs,
                                                       size_t input_count, sparkle_done_function done, void* user,
                                                       int32_t* taken);
/* Returns when each item has its result; nothing may be submitted any more, and what was done can still be asked. */
SPARKLE_API sparkle_status sparkle_pipeline_drain(sparkle_pipeline* pipeline);
/* The same, and then the pipeline is gone. NULL is allowed. */
SPARKLE_API void sparkle_pipeline_close(sparkle_pipeline* pipeline);

/* -- Vulkan: a device, a queue and buffers of the caller's ----------------------------------------------------------------- */
/* Handles come as pointers and numbers, so that this header needs none of Vulkan's. They stay the caller's, and outlive the
 * sparkle_device and its sessions and buffers. Programs reach Vulkan through the loader libvulkan.so.1, as Sparkle does. */

/* What a device of the caller's is made of. */
typedef struct sparkle_vulkan_options {
  size_t size;           /* sizeof(sparkle_vulkan_options) */
  void* instance;        /* VkInstance, made with an apiVersion of 1.3 or later */
  void* physical_device; /* VkPhysicalDevice of it */
  void* device;          /* VkDevice of that */
  void* queue;           /* VkQueue of the device, of a family that computes */
  uint32_t queue_family; /* the number of that family */
  /* The VkDeviceCreateInfo that the device was made with, its chain included; read during the call. Its features must include
   * bufferDeviceAddress, timelineSemaphore, scalarBlockLayout, synchronization2 and maintenance4; no extension is needed. Used
   * where they are on: shaderFloat16 with storageBuffer16BitAccess, shaderInt8 with storageBuffer8BitAccess, shaderInt16,
   * shaderInt64, shaderFloat64, shaderIntegerDotProduct, subgroupSizeControl with computeFullSubgroups,
   * VK_KHR_cooperative_matrix with cooperativeMatrix and vulkanMemoryModel. */
  const void* device_create_info;
  /* Called before and after each submission to the queue, from any thread. NULL: the caller sees to it that nothing else uses
   * the queue during a call of Sparkle's on this device. */
  void (*lock_queue)(void* user);
  void (*unlock_queue)(void* user); /* see lock_queue */
  void* user;                       /* given to both as it is */
} sparkle_vulkan_options;

/* A device that runs on the caller's queue. `options`: as sparkle_device_open has them, name and allocator unused; may be NULL.
 * Rates of a GPU that nobody has measured yet are measured here (about 50 ms of its time).
 * SPARKLE_DEVICE_UNUSABLE says what is missing. */
SPARKLE_API sparkle_status sparkle_vulkan_device_open(const sparkle_vulkan_options* vulkan,
                                                      const sparkle_device_options* options, sparkle_device** device);

/* A part of a VkBuffer of the caller's. */
typedef struct sparkle_vulkan_buffer {
  size_t size;     /* sizeof(sparkle_vulkan_buffer) */
  void* device;    /* VkDevice that the buffer was made on */
  uint64_t buffer; /* VkBuffer, memory bound to it that was allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT */
  uint32_t usage;  /* that it was made with: storage buffer, shader device address, transfer source and destination at least */
  int64_t offset;  /* where the tensor begins, its device address being a multiple of 16 */
  int64_t bytes;   /* from there on */
} sparkle_vulkan_buffer;

/* A part of the caller's VkBuffer as a buffer, neither copied nor freed. What the caller wrote into it must be complete before
 * a run begins, or have been submitted to the same queue with a barrier to reads by compute shaders. Commands that the caller
 * submits to the same queue afterwards see what a run wrote; the host sees it after sparkle_device_wait. SPARKLE_BAD_USAGE for
 * another device, a missing usage and bytes that are not there. */
SPARKLE_API sparkle_status sparkle_buffer_wrap_vulkan(sparkle_device* device, const sparkle_vulkan_buffer* vulkan,
                                                      sparkle_buffer** buffer);
/* Where a buffer of a Vulkan device lies, for commands of the caller's own: VkBuffer, offset in it, VkDeviceAddress. Each of
 * the places may be NULL. */
SPARKLE_API sparkle_status sparkle_buffer_vulkan(const sparkle_buffer* buffer, uint64_t* vk_buffer, int64_t* offset,
                                                 uint64_t* address);

/* -- CUDA: memory and streams of the caller's ------------------------------------------------------------------------------ */
/* Sparkle works in a device's primary context, as the CUDA runtime and the libraries above it do. Addresses (CUdeviceptr) and
 * streams (cudaStream_t, CUstream; 0: the default stream) come as numbers. SPARKLE_DEVICE_UNUSABLE for other devices. */

/* The caller's memory of the device as a buffer, neither copied nor freed; its address is a multiple of 16. SPARKLE_BAD_USAGE
 * for memory of another device and bytes that are not there. */
SPARKLE_API sparkle_status sparkle_buffer_wrap_cuda(sparkle_device* device, uint64_t address, int64_t bytes,
                                                    sparkle_buffer** buffer);
/* Where a buffer of a CUDA device lies, for kernels of the caller's own. */
SPARKLE_API sparkle_status sparkle_buffer_cuda(const sparkle_buffer* buffer, uint64_t* address);
/* The device's number as CUDA counts them (CUdevice, cudaSetDevice). */
SPARKLE_API sparkle_status sparkle_device_cuda(sparkle_device* device, int32_t* ordinal);
/* What is submitted to the device from now on begins when what the stream holds now is done; the host waits for nothing. */
SPARKLE_API sparkle_status sparkle_device_follow_cuda_stream(sparkle_device* device, uint64_t stream);
/* What the caller puts into the stream from now on begins when the work of `token` is complete (sparkle_session_submit). */
SPARKLE_API sparkle_status sparkle_device_lead_cuda_stream(sparkle_device* device, uint64_t stream, uint64_t token);

#ifdef __cplusplus
}
#endif
#endif /* SPARKLE_SPARKLE_H */
