// What a cluster must have.

/**
 * The oldest Kubernetes. Match conditions of webhooks, and optional fields in them, are there in every cluster from then on
 * (KEP-3716, stable in 1.30).
 */
export const MIN_KUBERNETES = [1, 30] as const;
