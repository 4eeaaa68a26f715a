/** Seconds for one evaluation when neither policy nor server sets them. Also Kubewarden's default. */
export const DEFAULT_TIMEOUT_SECONDS = 2;

/** Time for one host call before it is an error: less than {@link DEFAULT_TIMEOUT_SECONDS}. Milliseconds. */
export const DEFAULT_CAPABILITY_TIMEOUT_MS = 1_500;

/**
 * Maximum size of a body in bytes. An UPDATE carries two objects of at most 3 MiB each (etcd's request limit, with room
 * for JSON), and 1 MiB remains for the rest: 2 × 3 + 1. The same limit as controller-runtime's.
 */
export const MAX_REVIEW_BYTES = 7 * 1024 * 1024;
