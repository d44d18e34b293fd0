/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts records stably, in generated kernels. A thread has V consecutive records. A block sorts a
 * tile with the records of all its threads, or several rows of SPAN positions each, and merges two
 * sorted runs one tile of the result at a time. `less(y, x)` is called only if y came after x. If
 * the order is not a strict weak order, the results are some of the records of the same row. */

/* Returns how many of the first `d` records of two merged runs are from the first run. */
template <typename R, typename N, typename Less>
static inline N split_merge(const R *a, N a_count, const R *b, N b_count, N d, const Less &less) {
    N low = d > b_count ? d - b_count : 0, high = d < a_count ? d : a_count;
    while (low < high) {
        const N middle = low + (high - low) / 2;
        if (less(b[d - 1 - middle], a[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Sorts the first `count` records of a thread. */
template <int V, typename R, typename Less>
static inline void sort_few(R (&x)[V], int count, const Less &less) {
#pragma unroll
    for (int i = 1; i < V; i++) {
        bool moves = i < count;
#pragma unroll
        for (int j = i; j > 0; j--) {
            moves = moves && less(x[j], x[j - 1]);
            const R y = x[j];
            x[j] = moves ? x[j - 1] : y;
            x[j - 1] = moves ? y : x[j - 1];
        }
    }
}

/* Writes to x the V records of two merged runs that start at number `d`. */
template <int V, typename R, typename Less>
static inline void merge_few(R (&x)[V], const R *a, int a_count, const R *b, int b_count, int d,
                             const Less &less) {
    if (d >= a_count + b_count) return;
    int i = split_merge(a, a_count, b, b_count, d, less), j = d - i;
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (d + v >= a_count + b_count) return;
        const bool right = i == a_count || (j < b_count && less(b[j], a[i]));
        x[v] = right ? b[j] : a[i];
        i += !right;
        j += right;
    }
}

/* Writes the records of all threads to the tile. */
template <int V, typename R> static inline void put_tile(R *tile, const R (&x)[V]) {
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; v++) tile[(int)threadIdx.x * V + v] = x[v];
    __syncthreads();
}

/* Sorts tiles of `rows` rows with n records each: load(row, i) creates a record, store(row, i,
 * x) stores it at its sorted position in its tile. ACROSS: neighboring threads have neighboring
 * rows. */
template <int V, int SPAN, bool ACROSS, int SIZE, typename N, typename R, typename Load, typename Less,
          typename Store>
static inline void sort_tiles(R (&tile)[SIZE], N rows, N n, const Load &load, const Less &less,
                              const Store &store) {
    const int together = SIZE / SPAN;
    const N tiles = (n + SIZE - 1) / SIZE, row = (N)blockIdx.x / tiles * together,
            first = (N)blockIdx.x % tiles * SIZE;
#pragma unroll
    for (int v = 0; v < V; v++) {
        const int k = (int)threadIdx.x + v * (SIZE / V);
        const int place = ACROSS ? k / together : k % SPAN, which = ACROSS ? k % together : k / SPAN;
        if (row + which < rows && first + place < n)
            tile[which * SPAN + place] = load(row + which, first + place);
    }
    __syncthreads();
    const int at = (int)threadIdx.x * V % SPAN;
    R *const mine = tile + ((int)threadIdx.x * V - at);
    const int count = row + (int)threadIdx.x * V / SPAN >= rows ? 0
                      : n - first < SPAN                        ? (int)(n - first)
                                                                : SPAN;
    R x[V];
#pragma unroll
    for (int v = 0; v < V; v++)
        if (at + v < count) x[v] = mine[at + v];
    sort_few(x, count - at, less);
    for (int width = V; width < SPAN; width *= 2) {
        put_tile(tile, x);
        const int pair = at & ~(2 * width - 1), rest = count - pair;
        const int a_count = rest < width ? rest : width, left = rest - a_count;
        merge_few(x, mine + pair, a_count, mine + pair + width, left < width ? left : width, at - pair,
                  less);
    }
    put_tile(tile, x);
/* Do not unroll completely, or the compiler keeps the addresses of loads in local memory. */
#pragma unroll 4
    for (int v = 0; v < V; v++) {
        const int k = (int)threadIdx.x + v * (SIZE / V);
        const int place = ACROSS ? k / together : k % SPAN, which = ACROSS ? k % together : k / SPAN;
        if (row + which < rows && first + place < n)
            store(row + which, first + place, tile[which * SPAN + place]);
    }
}

/* Merges pairs of runs of `width` records, in rows with n records in `from`. */
template <int V, int SIZE, typename N, typename R, typename Less, typename Store>
static inline void merge_tiles(R (&tile)[SIZE], const R *from, N n, N width, const Less &less,
                               const Store &store) {
    const N tiles = (n + SIZE - 1) / SIZE, row = (N)blockIdx.x / tiles,
            first = (N)blockIdx.x % tiles * SIZE, pair = first / width / 2 * 2 * width;
    const N rest = n - pair, a_count = rest < width ? rest : width, left = rest - a_count,
            b_count = left < width ? left : width, begin = first - pair,
            end = begin + SIZE < a_count + b_count ? begin + SIZE : a_count + b_count;
    const R *const a = from + row * n + pair, *const b = a + a_count;
    __shared__ N split[2];
    if (threadIdx.x < 2)
        split[threadIdx.x] = split_merge(a, a_count, b, b_count, threadIdx.x ? end : begin, less);
    __syncthreads();
    const N i = split[0], j = begin - i, most = i + (end - begin);
    const N i_end = split[1] < i ? i : split[1] < most ? split[1] : most;
    const int count = (int)(end - begin), of_a = (int)(i_end - i);
#pragma unroll
    for (int v = 0; v < V; v++) {
        const int k = (int)threadIdx.x + v * (SIZE / V);
        if (k < count) tile[k] = k < of_a ? a[i + k] : b[j + (k - of_a)];
    }
    __syncthreads();
    R x[V];
    merge_few(x, tile, of_a, tile + of_a, count - of_a, (int)threadIdx.x * V, less);
    put_tile(tile, x);
#pragma unroll
    for (int v = 0; v < V; v++) {
        const int k = (int)threadIdx.x + v * (SIZE / V);
        if (k < count) store(row, first + k, tile[k]);
    }
}

