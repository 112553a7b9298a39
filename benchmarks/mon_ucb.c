/* MonUCB without history in a Bernoulli world: the same algorithm, the same random draws, written directly in C.
   Prints its final regret with all digits, so that the benchmark can see that both did the same thing. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double uniform(uint64_t key, uint64_t purpose, uint64_t unit, uint64_t number) {
    uint64_t c0 = number & 0xFFFFFFFF, c1 = number >> 32, c2 = unit & 0xFFFFFFFF, c3 = purpose << 24;
    uint64_t k0 = key & 0xFFFFFFFF, k1 = key >> 32;
    for (int i = 0; i < 10; i++) {
        uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
        c0 = (p1 >> 32) ^ c1 ^ k0;
        c1 = p1 & 0xFFFFFFFF;
        c2 = (p0 >> 32) ^ c3 ^ k1;
        c3 = p0 & 0xFFFFFFFF;
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF;
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF;
    }
    return ((double)(((c0 << 32) | c1) >> 12) + 0.5) * 0x1p-52;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int64_t arms = atoll(argv[1]), horizon = atoll(argv[2]);
    uint64_t key = strtoull(argv[3], NULL, 10);
    double scale = strtod(argv[4], NULL); /* 2 log T */
    int64_t leaves = 2;
    while (leaves < arms) leaves *= 2;
    double *mean = malloc(arms * sizeof *mean), *total = calloc(arms, sizeof *total);
    double *index = malloc((arms + 1) * sizeof *index);
    int64_t *count = calloc(arms, sizeof *count), *pulls = calloc(arms, sizeof *pulls);
    int64_t *winner = malloc(2 * leaves * sizeof *winner);
    double best = 0.0, regret = 0.0;
    for (int64_t a = 0; a < arms; a++) {
        mean[a] = uniform(key, 0, 0, a);
        index[a] = 1.0;
        if (mean[a] > best) best = mean[a];
    }
    index[arms] = -INFINITY;
    for (int64_t i = 0; i < leaves; i++) winner[leaves + i] = i < arms ? i : arms;
    for (int64_t n = leaves - 1; n > 0; n--) winner[n] = winner[2 * n];
    struct timespec began, ended;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    for (int64_t t = 0; t < horizon; t++) {
        int64_t arm = winner[1];
        regret += best - mean[arm];
        double reward = uniform(key, 4, arm, pulls[arm]++) < mean[arm] ? 1.0 : 0.0;
        count[arm] += 1;
        total[arm] += reward;
        double value = total[arm] / count[arm] + sqrt(scale / count[arm]);
        if (value >= index[arm]) continue;
        index[arm] = value;
        for (int64_t node = (leaves + arm) >> 1; node > 0; node >>= 1) {
            int64_t left = winner[2 * node], right = winner[2 * node + 1];
            int64_t better = index[right] > index[left] ? right : left;
            int settled = winner[node] == better && better != arm;
            winner[node] = better;
            if (settled) break;
        }
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    double seconds = (ended.tv_sec - began.tv_sec) + 1e-9 * (ended.tv_nsec - began.tv_nsec);
    printf("%.17g %.9g\n", regret, seconds);
    return 0;
}
