/** Seconds for one evaluation when neither policy nor server sets them. Also Kubewarden's default. */
export const DEFAULT_TIMEOUT_SECONDS = 2;

/** Time for one host call before it is an error: less than {@link DEFAULT_TIMEOUT_SECONDS}. Milliseconds. */
export const DEFAULT_CAPABILITY_TIMEOUT_MS = 1_500;

/**
 * Maximum size of a body in bytes. An UPDATE carries two objects of at most 3 MiB each (etcd's request limit, with room
 * for JSON), and 1 MiB remains for the rest: 2 × 3 + 1. The same limit as controller-runtime's.
 */
export const MAX_REVIEW_BYTES = 7 * 1024 * 1024;

/** Longest name of an object in a monitored verdict: that of Kubernetes. Characters, as below. */
export const MAX_MONITORED_NAME = 253;
/** Longest name of a user; service accounts have up to 340 characters, mostly far fewer. */
export const MAX_MONITORED_USER = 128;
/** Longest message of a verdict. */
export const MAX_MONITORED_MESSAGE = 256;
