/* Native code on Windows, by llvmlite's DLL as fnad calls it there but without Python, whose functions do nothing here.
 *
 *     windows.exe llvmlite.dll THREADS CASES RESULTS
 *
 * THREADS is the LLVM code of threads. CASES has the flag of invalid operations, and a kernel after the other: the size of
 * its LLVM code and the code, the number of its arrays, and the size of each and its content. RESULTS gets the content of
 * all arrays. `tests/platforms.py` makes the first two and compares the third.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

typedef void *any;

static HMODULE library;
static any target;
static char triple[99], *features, *cpu, *error;

#define CALL(type, name, ...) ((type(*)())GetProcAddress(library, "LLVMPY_" name))(__VA_ARGS__)
#define AT(engine, type, name) ((type(*)())CALL(uint64_t, "GetFunctionAddress", engine, name))

static any machine(void) {
    return CALL(any, "CreateTargetMachine", target, triple, cpu, features, 3, "static", "jitdefault", 0, 1, "");
}

static any parsed(const char *code) {
    any module = CALL(any, "ParseAssembly", CALL(any, "GetGlobalContext", ), code, &error);
    if (!module || (error && *error)) printf("WRONG: %s\n", error), exit(1);
    return module;
}

/* The code of a module, emitted and linked. */
static any linked(const char *code) {
    any engine = CALL(any, "CreateMCJITCompiler", parsed(""), machine(), 0, &error);
    any buffer = CALL(any, "TargetMachineEmitToMemory", machine(), parsed(code), 1, &error);
    any start = CALL(any, "GetBufferStart", buffer);
    CALL(void, "MCJITAddObjectFile", engine, CALL(any, "CreateObjectFile", start, CALL(size_t, "GetBufferSize", buffer)));
    CALL(void, "FinalizeObject", engine);
    return engine;
}

static void add(const char *symbol, any address) { CALL(void, "AddSymbol", symbol, address); }

static int none[8];
static any nothing(void) { return NULL; }

static void start(const char *path) {
    char *process;
    const char *python[] = {"PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_Occurred", "Py_IncRef",
                            "PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release"};
    if (!(library = LoadLibraryA(path))) printf("WRONG: no %s, error %lu\n", path, GetLastError()), exit(1);
    CALL(void, "LinkInMCJIT", );
    CALL(void, "InitializeNativeTarget", );
    CALL(void, "InitializeNativeAsmPrinter", );
    CALL(void, "GetProcessTriple", &process);
    CALL(void, "GetHostCPUName", &cpu);
    CALL(int, "GetHostCPUFeatures", &features);
    target = CALL(any, "GetTargetFromTriple", process, &error);
    snprintf(triple, sizeof triple, "%s-elf", process); /* as llvmlite does */
    CALL(any, "CreateMCJITCompiler", parsed(""), machine(), 0, &error);
    for (int n = 0; n < 7; n++) add(python[n], nothing);
    add("_Py_NoneStruct", none);
    add("hypotf", GetProcAddress(LoadLibraryA("ucrtbase"), "_hypotf"));
    add("__chkstk", GetProcAddress(LoadLibraryA("ntdll"), "__chkstk"));
    printf("%s, %s\n", triple, cpu);
}

static int64_t number(FILE *file) {
    int64_t read;
    return fread(&read, 8, 1, file) == 1 ? read : -1;
}

static char *bytes(FILE *file, int64_t size) {
    char *content = _aligned_malloc(size + 1, 64);
    content[fread(content, 1, size, file)] = 0;
    return content;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { WORKERS = 8, STOP, THRESHOLD, TASKS = 40, THREADS = 3, SCRATCH = 900000 };
static int64_t state[64] __attribute__((aligned(64)));
static volatile int64_t runs[TASKS];
static DWORD threads[TASKS];

static void task(any context, int64_t n, any scratch) {
    memset(scratch, 1, (size_t)context); /* all of it is a worker's own */
    for (volatile int k = 0; k < 100000; k++) continue;
    threads[n] = GetCurrentThreadId();
    runs[n]++;
}

static void share_loops(const char *code) {
    static char scratch[SCRATCH];
    int64_t status[64] = {0}, handles[THREADS];
    int wrong = 0, helped = 0;
    add("threads_state", state);
    any engine = linked(code);
    for (int round = 0; round < 20; round++) {
        AT(engine, void, "threads_reset")();
        state[STOP] = 0;
        for (int n = 0; n < THREADS; n++) wrong += (char)AT(engine, int64_t, "threads_start")((int64_t)n + 1, &handles[n]) != 1;
        state[WORKERS] = THREADS, state[THRESHOLD] = -1;
        for (int loop = 0; loop < 10; loop++) {
            memset((any)runs, 0, sizeof runs);
            AT(engine, void, "threads_share")
            (task, (any)(int64_t)SCRATCH, (int64_t)TASKS, (int64_t)THREADS + 1, (int64_t)0, (int64_t)1, status, scratch,
             (int64_t)SCRATCH);
            for (int n = 0; n < TASKS; n++) wrong += runs[n] != 1, helped += threads[n] != GetCurrentThreadId();
        }
        state[WORKERS] = 0;
        AT(engine, void, "threads_end")();
        for (int n = 0; n < THREADS; n++) AT(engine, void, "threads_join")(handles[n]);
    }
    printf("threads: %d tasks of %d run by workers\n", helped, 200 * TASKS);
    if (wrong || !helped) printf("WRONG: %d tasks or threads\n", wrong), exit(1);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static void run_kernel(any engine, FILE *cases, FILE *results) {
    any arrays[9], objects[9][3];
    int64_t sizes[9], count = number(cases);
    for (int n = 0; n < count; n++) {
        arrays[n] = objects[n];
        objects[n][2] = bytes(cases, sizes[n] = number(cases)); /* behind the header of a Python object */
    }
    if (AT(engine, any, "entry")(NULL, arrays, count) != none) printf("WRONG: a kernel failed\n"), exit(1);
    for (int n = 0; n < count; n++) fwrite(objects[n][2], 1, sizes[n], results);
}

/* The functions of flags that LLVM finds take `flag` for an invalid operation alone. */
static void raise_flags(int flag) {
    int (*clear)(int) = CALL(any, "SearchAddressOfSymbol", "feclearexcept");
    int (*test)(int) = CALL(any, "SearchAddressOfSymbol", "fetestexcept");
    volatile double number = 0.0;
    clear(flag), number /= number;
    int invalid = test(flag);
    clear(flag), number = 3.0, number = 1.0 / number;
    printf("flags: %d if invalid, %d if inexact\n", invalid, test(flag));
    if (!invalid || test(flag)) printf("WRONG: flags\n"), exit(1);
}

int main(int count, char **names) {
    FILE *code = fopen(names[2], "rb"), *cases = fopen(names[3], "rb"), *results = fopen(names[4], "wb");
    int kernels = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    start(names[1]);
    share_loops(bytes(code, 1 << 20));
    raise_flags(number(cases));
    for (int64_t size; (size = number(cases)) >= 0; kernels++) run_kernel(linked(bytes(cases, size)), cases, results);
    printf("%d kernels\n", kernels);
    return fclose(results);
}
